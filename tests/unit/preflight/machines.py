"""A site, and machines that are fit for it; each test spoils one thing."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pai_install.checks.finding import Finding
from pai_install.preflight.evidence import PreflightEvidence, parse_evidence
from pai_install.preflight.judge import judge
from pai_install.site import Site, load_site

LAYOUT = """
machine-sku:
  cpu: {mem: 8Gi, cpu: {vcore: 4}}
  gpu: {mem: 8Gi, cpu: {vcore: 4}, computing-device: {type: nvidia.com/gpu, model: A100, count: 2}}
machine-list:
  - {hostname: master, hostip: 10.0.0.1, machine-type: cpu, pai-master: "true"}
  - {hostname: worker1, hostip: 10.0.0.2, machine-type: gpu, pai-worker: "true"}
  - {hostname: worker2, hostip: 10.0.0.3, machine-type: cpu, pai-worker: "true"}
"""
CONFIG = "user: pai\nssh_key_file_path: key\ndocker_data_root: /var/lib/docker\n"
DRIVER = "nvidia_driver: {branch: 580}\n"
NAMES = ("master", "worker1", "worker2")
GIB = 1 << 30


# worker2 serves storage, and each worker mounts that of another server
STORING = LAYOUT.replace(
    'machine-type: cpu, pai-worker: "true"', 'machine-type: cpu, pai-worker: "true", pai-storage: "true"'
)
QUOTAS = "storage-manager: {quotas: {user: 5Gi}}\n"
STORAGES = (
    """storages:
  - {name: own, type: nfs, server: worker2, path: /share/data}
  - name: data
    type: nfs
    server: nas
    path: /export/data
    mount-options: [nfsvers=4.1, port=20490]
"""
    + QUOTAS
)


def write_site(folder: Path, layout: str = LAYOUT, config: str = CONFIG, services: str = "") -> Path:
    """Writes the site's files; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "key").touch(mode=0o600)
    (folder / "layout.yaml").write_text(layout)
    (folder / "config.yaml").write_text(config)
    if services:
        (folder / "services-configuration.yaml").write_text(services)
    return folder


def read_site(folder: Path, layout: str = LAYOUT, config: str = CONFIG, services: str = "") -> Site:
    """The site of those files."""
    return load_site(write_site(folder, layout, config, services)).site


def mount(path: str, **changes: Any) -> dict[str, Any]:
    """A file system of 500 GiB, mostly free, all on one disk."""
    return {
        "path": path,
        "mount_point": "/",
        "device": "1",
        "filesystem": "ext4",
        "read_only": False,
        "noexec": False,
        "project_quotas": True,
        "total_bytes": 500 * GIB,
        "free_bytes": 400 * GIB,
        "inodes": 1000,
        "inodes_free": 900,
        **changes,
    }


# what is known of Docker only where it runs
RUNNING_DOCKER = {
    "running": True,
    "program": "/usr/sbin/dockerd",
    "package": "docker.io",
    "version": "26.1",
    "data_root": "/var/lib/docker",
    "live_restore": True,
    "swarm": False,
    "cgroup_parent": "",
    "own_parents": {},
}
PATHS = ("/", "/var/lib/containerd", "/var/lib/kubelet", "/usr/local/bin", "/var/lib/docker")

OWN_PATHS = {"master": ("/var/lib/etcd", "/var/lib/pai-install"), "worker2": ("/share",)}


def good(name: str) -> dict[str, Any]:
    """What module pai_preflight says of a machine that is fit; machines of the site differ in name and ids."""
    number = NAMES.index(name) + 1
    paths = (*PATHS, *OWN_PATHS.get(name, ()))
    gpus = [{"address": f"0000:0{bus}:00.0", "vendor": "10de", "revision": "a1"} for bus in (1, 2)]
    return {
        "schema_version": 1,
        "clock": {"began": 1000.0, "ended": 1002.0},
        "identity": {
            "hostname": name,
            "machine_id": f"{number:032x}",
            "product_uuid": f"4c4c4544-0000-0000-0000-{number:012x}",
            "container": "",
            "user": "root",
            "root": True,
            "python": "3.11.2",
        },
        "system": {
            "id": "debian",
            "version_id": "12",
            "name": "Debian GNU/Linux 12 (bookworm)",
            "architecture": platform.machine(),
            "kernel": "6.1.0-18-amd64",
            "pid_max": 4194304,
            "threads_max": 500000,
            "systemd": True,
        },
        "hardware": {
            "memory_bytes": 8 * GIB - (200 << 20),
            "cpus": 4,
            "pci": gpus if name == "worker1" else [],
            "nvidia_driver": "NVRM version: NVIDIA UNIX 580.65" if name == "worker1" else "",
            "nouveau": False,
            "secure_boot": False,
            "dkms_key_enrolled": False,
            "headers": "installed",
        },
        "mounts": [mount(path) for path in paths],
        "swap": {"active": [], "fstab": [], "units": [], "zram": []},
        "time": {"services": ["systemd-timesyncd"], "synchronised": True, "chrony": ""},
        "modules": {"there": ["overlay", "vxlan"], "missing": [], "tree": True, "other_trees": []},
        "cgroups": {"version": 2, "controllers": ["cpuset", "cpu", "io", "memory", "pids"]},
        "packages": {},
        "docker": {
            "running": False,
            "snap": False,
            "program": "",
            "package": "",
            "daemon_json": "",
            "data_root": "",
            "cgroup_parent": "",
        },
        "devices": {"gpu_containers": 0, "gpu_processes": 0},
        "containerd": {"running": False, "config": "", "tasks": {}, "old_shims": 0},
        "kubernetes": {
            "marker": {},
            "roles": [],
            "files": [],
            "authority": "",
            "cni": [],
            "other": [],
            "etcd_entries": 0,
            "kubelet_running": False,
        },
        "leftovers": {"interfaces": [], "folders": [], "tables": [], "chains": []},
        "interfaces": [interface(f"10.0.0.{number}/24", mac=f"52:54:00:00:00:0{number}")],
        "routes": [
            {"network": "0.0.0.0/0", "interface": "eth0"},
            {"network": "10.0.0.0/24", "interface": "eth0"},
        ],
        "listeners": [{"protocol": "tcp", "address": "10.0.0.1", "port": 22, "program": "sshd (700)"}],
        "names": {"files": {"/etc/resolv.conf": ["10.0.0.53"]}, "resolved": False},
        "firewall": {"ufw": False, "firewalld": False, "chains": []},
        "proxies": {},
        "package_sources": {"deb.debian.org:80": ""},
        "package_refusals": [],
        "servers": {},
        "peers": {other: peer() for other in NAMES if other != name},
        "exports": [{"answer": "served", "why": ""}],
        "problems": {},
        **({"etcd_disk": etcd_disk()} if name == "master" else {}),
    }


def interface(*addresses: str, name: str = "eth0", mac: str = "52:54:00:00:00:09", mtu: int = 1500) -> dict[str, Any]:
    """A network card with these addresses."""
    return {"name": name, "mac": mac, "mtu": mtu, "addresses": list(addresses)}


def peer(**changes: Any) -> dict[str, Any]:
    """Another machine that answers as it should before an installation."""
    return {"tcp": {"22": "open", "6443": "refused"}, "small": True, "large": True, "size": 1500, **changes}


def etcd_disk(median_ms: float = 0.4, p99_ms: float = 2.0, samples: int = 200) -> dict[str, Any]:
    """A disk that is quick enough."""
    return {"folder": "/var/lib", "samples": samples, "median_ms": median_ms, "p99_ms": p99_ms, "max_ms": p99_ms}


# what module pai_preflight sees of an installed machine, over `good`
def installed(name: str) -> dict[str, Any]:
    """A machine of a running cluster of ours, with everything of ours listening and using space."""
    master = name == "master"
    programs = {10250: "kubelet", 10248: "kubelet", 10249: "kube-proxy", 10256: "kube-proxy", 7443: "haproxy"}
    if master:
        programs |= {6443: "kube-apiserver", 2379: "etcd", 2380: "etcd", 2381: "etcd", 5080: "pai-registry"}
        programs |= {10257: "kube-controller-manager", 10259: "kube-scheduler"}
    listeners = [{"protocol": "tcp", "port": port, "program": f"{program} (1)"} for port, program in programs.items()]
    listeners += [
        {"protocol": "udp", "port": 8472, "program": ""},
        {"protocol": "udp", "port": 123, "program": "chronyd (9)"},
    ]
    files = ["/etc/kubernetes/kubelet.conf", *(["/etc/kubernetes/admin.conf"] if master else [])]
    machine = good(name)
    return {
        **machine,
        "kubernetes": {
            "marker": {"state": "init" if master else "join", "done": True},
            "roles": ["base", "component_store", "container_runtime"],
            "files": files,
            "authority": "00ff00ff00ff00ff",
            "etcd_entries": 1 if master else 0,
            "cni": [],
            "other": [],
            "kubelet_running": True,
        },
        "leftovers": {
            "interfaces": ["cni0", "flannel.1"],
            "folders": ["/var/lib/cni/networks", "/var/lib/kubelet/pods"],
            "tables": ["ip kube-proxy"],
            "chains": [],
        },
        "listeners": listeners,
        "routes": [*machine["routes"], {"network": "10.200.1.0/25", "interface": "cni0"}],
        "mounts": [mount(entry["path"], total_bytes=40 * GIB, free_bytes=8 * GIB) for entry in machine["mounts"]],
        "docker": {**machine["docker"], **RUNNING_DOCKER, "containers": 3},
        "packages": {"docker.io": "26.1", "chrony": "4.6"},
        "peers": {other: peer(tcp={"22": "open", "6443": "open"}) for other in NAMES if other != name},
    }


def timed(evidence: PreflightEvidence, *, ahead: float = 0.0, took: float = 2.6) -> PreflightEvidence:
    """With the box's own times around it: the machine's clock is `ahead` seconds, the answer took `took` seconds."""
    asked = evidence.clock.began - (took - 2.0) / 2 - ahead
    clock = evidence.clock.model_copy(update={"requested": asked, "answered": asked + took})
    return evidence.model_copy(update={"clock": clock})


def without(evidence: PreflightEvidence, part: str) -> PreflightEvidence:
    """The machine without one part of its evidence."""
    values = {name: getattr(evidence, name) for name in evidence.model_fields_set if name != part}
    return PreflightEvidence.model_construct(**values)


# parts that map names to something: a test gives all of them
_WHOLE = {"package_sources", "servers", "proxies", "peers", "packages"}


def fleet(changes: Mapping[str, Mapping[str, Any]] | None = None, base: Any = good) -> dict[str, PreflightEvidence]:
    """Evidence of all machines; `changes`: machine -> part -> value, merged into the good value of that part."""
    found = {}
    for name in NAMES:
        raw = base(name)
        for part, value in (changes or {}).get(name, {}).items():
            merge = isinstance(value, dict) and part not in _WHOLE
            raw[part] = {**raw[part], **value} if merge else value
        found[name] = timed(parse_evidence(raw))
    return found


def findings_of(
    site: Site, check: str, changes: Mapping[str, Mapping[str, Any]] | None = None, base: Any = good
) -> dict[str, Finding]:
    """Machine -> what one check says."""
    found = judge(site, fleet(changes, base), {})
    return {finding.subject: finding for finding in found if finding.id == check}
