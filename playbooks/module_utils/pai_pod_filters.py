"""Network interfaces and packet filters that a node has for its pods."""

from __future__ import annotations

import os
import re
from typing import Any

from ansible.module_utils.pai_machine import PROGRAM_MISSING, command, read

INTERFACES = re.compile(r"(cni\d+|flannel[.\d-].*|kube-.*)$")
TABLES = ("kube-proxy", "flannel-ipv4", "flannel-ipv6")
CHAINS = ("KUBE-", "FLANNEL-", "CNI-")


def pod_interfaces(links: list[dict[str, Any]]) -> list[str]:
    """Returns the names of interfaces of a pod network, from the output of ip."""
    return [name for name in (link.get("ifname", "") for link in links) if INTERFACES.match(name)]


def packet_filters() -> tuple[list[str] | None, list[str] | None]:
    """Returns nftables tables and chains of kube-proxy, flannel, and CNI plugins, or None without root permissions.

    Reads a filter only if it is loaded, because reading would load it.
    """
    tables: list[str] = []
    chains: list[str] = []
    if os.path.isdir("/sys/module/nf_tables"):
        status, output = command(["nft", "list", "chains"])
        if status not in (0, PROGRAM_MISSING):
            return None, None
        tables, chains = filters_of_pods(output)
    if "nat" in read("/proc/net/ip_tables_names").split():
        # The legacy back end has its own tables, which nft does not list.
        rules = command(["iptables-legacy", "--table", "nat", "--list-rules"])[1]
        chains += [name for name in re.findall(r"^-N (\S+)", rules, re.MULTILINE) if name.startswith(CHAINS)]
    return tables, sorted(set(chains))


def filters_of_pods(text: str) -> tuple[list[str], list[str]]:
    """Of `nft list chains`: the tables that a pod network owns, as FAMILY NAME, and its chains in other tables."""
    tables, chains, owned = [], [], False
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["table"]:
            owned = words[2] in TABLES
            tables += [" ".join(words[1:3])] if owned else []
        elif words[:1] == ["chain"] and not owned and words[1].startswith(CHAINS):
            chains.append(words[1])
    return tables, sorted(set(chains))
