#!/usr/bin/python
"""Ansible module: everything a plan needs to know of a machine, in one read-only task."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_facts
short_description: Observe a machine
description:
  - Reads the facts that the planner and the roles decide on, and checks the expectations that roles recorded.
  - Changes nothing.
options:
  units:
    description: Units to report when they run. Default is all units of the roles.
    type: list
    elements: str
  namespaces:
    description: Namespaces of system pods, observed on a control plane.
    type: list
    elements: str
    default:
      - kube-system
      - kube-flannel
      - pai-docker-cache
      - pai-volumes
      - pai-hived
      - pai-jobset
      - pai-logs
      - pai-monitoring
      - pai-volcano
      - pai-console
      - pai-training-operator
      - pai-kueue
author: [pai-install]
"""
EXAMPLES = r"""
- name: Observe the machine
  pai_facts:
"""
RETURN = r"""
ansible_facts: {description: "The facts, below the key pai.", type: dict, returned: always}
"""

import glob
import json
import os
import platform
import re
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_certificates import certificates
from ansible.module_utils.pai_cluster_settings import node_name, running_settings
from ansible.module_utils.pai_cluster_state import SYSTEM_NAMESPACES, child, node_facts, pod_facts
from ansible.module_utils.pai_in_use import cni_files, dropped_forwarding, gpu_containers, stops_with_containerd
from ansible.module_utils.pai_installed import images, programs
from ansible.module_utils.pai_kubectl import ADMIN_CONF, Kubectl, KubectlError
from ansible.module_utils.pai_machine import cgroup_driver, cgroup_version, os_release, read
from ansible.module_utils.pai_managed import ROLES_DIR, STATE_DIR, drifted, readers, restarts
from ansible.module_utils.pai_nvidia import driver_facts
from ansible.module_utils.pai_parallel import in_parallel
from ansible.module_utils.pai_running import WATCHED, docker, services

CAP_SYS_RESOURCE = 24
RESOLVED = "systemd-resolved.service"


def distribution() -> dict[str, str]:
    """id, version_id and version_codename of /etc/os-release."""
    known = os_release()
    return {name: known.get(name, "") for name in ("id", "version_id", "version_codename")}


def has_capability(bit: int) -> bool:
    """Whether root may use a capability on this machine at all."""
    bounding = re.search(r"^CapBnd:\s*([0-9a-f]+)$", read("/proc/self/status"), re.MULTILINE)
    # The bounding set counts: root of a container cannot get a capability that is missing there.
    return bool(bounding and int(bounding.group(1), 16) >> bit & 1)


def virtualization(module: AnsibleModule) -> dict[str, Any]:
    """Returns the output of systemd-detect-virt, and whether it names a container."""
    status, out, _err = module.run_command(["systemd-detect-virt", "--container"])
    if status == 0:
        return {"kind": out.strip(), "container": True}
    return {
        "kind": module.run_command(["systemd-detect-virt", "--vm"])[1].strip() or "none",
        "container": False,
    }


def roles(api_answers: bool = True) -> dict[str, dict[str, Any]]:
    """Returns role -> its settings, notes, drift, and restarting services.

    readers: units that restart when the role changes one of their files. restarts: units with drifted files.
    api_answers: False if the API server is known not to respond: each role would wait for it once per namespace.
    """
    paths = sorted(glob.glob(ROLES_DIR + "/*.json"))
    # most of it is waiting for other programs
    found = in_parallel(lambda path: role(path, api_answers), paths)
    return {os.path.basename(path)[: -len(".json")]: one for path, one in zip(paths, found)}


def role(path: str, api_answers: bool) -> dict[str, Any]:
    """One of the roles, by its record."""
    try:
        with open(path, encoding="utf-8") as handle:
            record = json.load(handle)
        problems = drifted(record["managed"], api_answers)
        return {
            "settings": record["settings"],
            "drift": [problem for _item, problem in problems],
            "notes": record.get("notes", {}),
            "readers": readers(record["managed"]),
            "restarts": restarts(record["managed"], [item for item, _problem in problems]),
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return {"settings": {}, "drift": [f"the record {path} cannot be used: {error}"]}


def serves_nfs(container: bool) -> bool:
    """Whether the kernel has an NFS server for this machine: a container does not have its kernel to itself."""
    module = f"/lib/modules/{platform.release()}/kernel/fs/nfsd/nfsd.ko*"
    return not container and ("\tnfsd" in read("/proc/filesystems") or bool(glob.glob(module)))


def default_mtu(module: AnsibleModule) -> int:
    """Returns the MTU of the interface with the default route, by default 1500.

    Uses `ip`, because /sys/class/net of a container may be that of its host.
    """
    for line in read("/proc/net/route").splitlines()[1:]:
        words = line.split()
        if words[1] == "00000000":
            found = re.search(
                r" mtu (\d+) ", module.run_command(["ip", "-oneline", "link", "show", "dev", words[0]])[1]
            )
            return int(found.group(1)) if found else 1500
    return 1500


def mtus(module: AnsibleModule) -> dict[str, int]:
    """Returns IPv4 address -> MTU of its interface, or {} if `ip` fails."""
    status, out, _err = module.run_command(["ip", "-json", "-4", "address", "show"])
    try:
        interfaces = json.loads(out or "[]") if status == 0 else []
        return {info["local"]: int(one["mtu"]) for one in interfaces for info in one.get("addr_info", [])}
    except (ValueError, KeyError, TypeError):
        return {}


def kubernetes() -> dict[str, Any]:
    """Returns the files of kubeadm and the kubelet on this machine."""
    return {
        "control_plane": os.path.exists("/etc/kubernetes/manifests/kube-apiserver.yaml"),
        "node": os.path.exists("/etc/kubernetes/kubelet.conf"),
        # an interrupted init or join has left files as well
        "joined": '"done": true' in read(STATE_DIR + "/kubeadm.json"),
        "node_name": node_name(),
        "settings": running_settings(),
    }


def cluster(namespaces: list[str]) -> dict[str, Any]:
    """Returns nodes and system pods from a control-plane node. `error`: the API server does not respond."""
    kubectl = Kubectl()
    try:
        listed = kubectl.items("nodes,namespaces", timeout_s=10)
        nodes = [item for item in listed if item.get("kind") == "Node"]
        # most add-ons are not wanted, and each call of kubectl costs the machine and its API server as much as a login
        present = {child(item, "metadata").get("name") for item in listed if item.get("kind") == "Namespace"}
        requested = [namespace for namespace in namespaces if namespace in present]
        pods = in_parallel(lambda it: kubectl.items("pods", f"--namespace={it}", timeout_s=10), requested)
    except KubectlError as error:
        return {"error": str(error)[:500], "nodes": [], "pods": []}
    found = [pod for part in pods for pod in part]
    return {"error": "", "nodes": list(map(node_facts, nodes)), "pods": list(map(pod_facts, found))}


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "units": {"type": "list", "elements": "str", "default": list(WATCHED)},
            "namespaces": {"type": "list", "elements": "str", "default": list(SYSTEM_NAMESPACES)},
        },
        supports_check_mode=True,
    )
    # A worker has no kubeconfig that may list nodes and pods.
    seen = cluster(module.params["namespaces"]) if os.path.exists(ADMIN_CONF) else None
    machine, units = virtualization(module), module.params["units"]
    # One question to systemd for all units.
    running = services([*units, RESOLVED])
    facts = {
        "hostname": platform.node(),
        "machine_id": read("/etc/machine-id"),
        "os": distribution(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "virtualization": machine,
        "cgroup_version": cgroup_version(),
        "cgroup_driver": cgroup_driver(cgroup_version(), machine["container"]),
        "sys_resource": has_capability(CAP_SYS_RESOURCE),
        "bridge_netfilter": os.path.isdir("/proc/sys/net/bridge"),
        "nfsd": serves_nfs(machine["container"]),
        "mtu": default_mtu(module),
        "mtus": mtus(module),
        "kubernetes": kubernetes(),
        "certificates": certificates(module.run_command),
        "services": [name for name in running if name in units],
        "resolved": RESOLVED in running,
        "docker": docker(),
        "in_use": {
            "docker_stops_with_containerd": stops_with_containerd(),
            "gpu_containers": gpu_containers(),
            "dropped_forwarding": dropped_forwarding(),
            "cni_files": cni_files(),
        },
        "nvidia": driver_facts(),
        "roles": roles(api_answers=seen is None or not seen["error"]),
        "programs": programs(),
        "images": images(),
    }
    if seen is not None:
        facts["cluster"] = seen
    module.exit_json(changed=False, ansible_facts={"pai": facts})


if __name__ == "__main__":
    main()
