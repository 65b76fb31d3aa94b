"""Evidence of the remains of a node: network interfaces, folders, and packet filters of its pods."""

from __future__ import annotations

import json
from typing import Any

from ansible.module_utils.pai_machine import command
from ansible.module_utils.pai_pod_filters import packet_filters, pod_interfaces
from ansible.module_utils.pai_probe import names_in

FOLDERS = ("/var/lib/cni/networks", "/etc/kubernetes/pki", "/var/lib/kubelet/pods")


def leftovers() -> dict[str, Any]:
    """Returns interfaces of pods, non-empty folders, and tables and chains of packet filters.

    tables and chains are None without root permissions.
    """
    status, output = command(["ip", "-json", "link", "show"])
    if status != 0:
        raise OSError("ip -json link show failed")
    tables, chains = packet_filters()
    return {
        "interfaces": pod_interfaces(json.loads(output or "[]")),
        "folders": [path for path in FOLDERS if names_in(path)],
        "tables": tables,
        "chains": chains,
    }
