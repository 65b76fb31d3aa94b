#!/usr/bin/python
"""Ansible module: everything that speaks for or against installing a machine, in one read-only task."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_preflight
short_description: Collect preflight evidence
description:
  - Changes nothing and judges nothing. Every probe has a time limit. A failed probe loses only its own evidence.
  - Also works without root, with less evidence.
options:
  paths: {description: Folders with file systems to check., type: list, elements: str, default: []}
  modules: {description: Kernel modules that will be needed., type: list, elements: str, default: []}
  etcd: {description: Folder of etcd, to measure its disk. Empty for none., type: str, default: ""}
  resolv_conf: {description: The kubelet's resolver file where the site names one., type: str, default: ""}
  servers: {description: HOST:PORT of servers that must be reachable., type: list, elements: str, default: []}
  peers:
    description: Other machines to reach, each with name, address and a list of TCP ports.
    type: list
    elements: dict
    default: []
  exports:
    description: Folders of NFS servers that this machine will mount, each with server, path and port.
    type: list
    elements: dict
    default: []
  timeout: {description: Seconds for all probes together., type: float, default: 20}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Run preflight probes
  pai_preflight:
    paths: [/, /var/lib/docker]
"""
RETURN = r"""
evidence: {description: Evidence of each probe. problems lists probes without evidence., type: dict, returned: always}
"""

import time
from functools import partial
from typing import Any

from ansible.module_utils import pai_probe_apt as apt
from ansible.module_utils import pai_probe_machine as machine
from ansible.module_utils import pai_probe_network as network
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_nfs import exports
from ansible.module_utils.pai_probe import Probe, gather
from ansible.module_utils.pai_probe_leftovers import leftovers

WRITE_SECONDS = 2.0


def probes(params: dict[str, Any]) -> dict[str, Probe]:
    """Name -> probe, for the parameters of the module."""
    found: dict[str, Probe] = {
        "identity": machine.identity,
        "system": machine.system,
        "hardware": machine.hardware,
        "mounts": partial(machine.mounts, params["paths"]),
        "swap": machine.swap,
        "time": machine.timekeeping,
        "modules": partial(machine.kernel_modules, params["modules"]),
        "cgroups": machine.cgroups,
        "packages": machine.packages,
        "docker": machine.docker,
        "devices": machine.devices,
        "containerd": machine.containerd,
        "kubernetes": machine.kubernetes,
        "leftovers": leftovers,
        "interfaces": network.interfaces,
        "routes": network.routes,
        "listeners": network.listeners,
        "names": partial(network.names, params["resolv_conf"]),
        "firewall": network.firewall,
        "proxies": network.proxies,
        "package_sources": network.package_sources,
        "package_refusals": apt.refused_sources,
        "servers": partial(network.servers, params["servers"]),
        "peers": partial(network.peers, params["peers"]),
        "exports": partial(exports, params["exports"]),
    }
    if params["etcd"]:
        found["etcd_disk"] = partial(machine.write_latency, params["etcd"], WRITE_SECONDS)
    return found


def main() -> None:
    """Runs the module."""
    began = time.time()
    module = AnsibleModule(
        argument_spec={
            "paths": {"type": "list", "elements": "str", "default": []},
            "modules": {"type": "list", "elements": "str", "default": []},
            "etcd": {"type": "str", "default": ""},
            "resolv_conf": {"type": "str", "default": ""},
            "servers": {"type": "list", "elements": "str", "default": []},
            "peers": {"type": "list", "elements": "dict", "default": []},
            "exports": {"type": "list", "elements": "dict", "default": []},
            "timeout": {"type": "float", "default": 20},
        },
        supports_check_mode=True,
    )
    evidence, problems = gather(probes(module.params), module.params["timeout"])
    clock = {"began": began, "ended": time.time()}
    module.exit_json(changed=False, evidence={**evidence, "schema_version": 1, "clock": clock, "problems": problems})


if __name__ == "__main__":
    main()
