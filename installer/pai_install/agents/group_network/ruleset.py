"""The packet filter of a node as a text for nft. Pure.

Groups reach their own pods, all pods of other namespaces, and what is outside the pod network. It keeps no connections:
each packet is judged, so that no connection outlives a wrong moment. A pod whose namespace is not known yet reaches no
pod of a group, and its first packets are sent again.

Control planes alone begin a connection to the web page or SSH server of a pod. Its own connections go everywhere as
before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address

from pai_install.agents.group_network.addresses import CONTROL_PLANES, GROUP, MACHINES, OTHERS

TABLE = "ip pai_groups"
# the pod network has no IPv6: on the bridge of a node, pods would reach each other past the addresses that count
_IPV6 = """table ip6 pai_groups
delete table ip6 pai_groups
table ip6 pai_groups {
chain forward {
type filter hook forward priority -5; policy accept;
iifname "cni0" drop
}
chain input {
type filter hook input priority -5; policy accept;
iifname "cni0" drop
}
}
"""


@dataclass(frozen=True)
class Rules:
    """cidr: of all pods. ports: protocol -> ports of machines that no pod of a group needs."""

    cidr: str
    ports: Mapping[str, tuple[int, ...]]


def ruleset(
    rules: Rules, sets: Mapping[str, Iterable[IPv4Address]], pages: Iterable[tuple[IPv4Address, int]] = ()
) -> str:
    """Returns the tables, which replace those before in one step. sets, pages: as published."""
    groups = {name: tuple(found) for name, found in sorted(sets.items()) if name.startswith(GROUP)}
    numbers = {name: f"group{number}" for number, name in enumerate(groups)}
    members = {address: numbers[name] for name, found in groups.items() for address in found}
    lines = [
        # nft fails to delete a table that is missing, so the first line makes sure that there is one.
        f"table {TABLE}",
        f"delete table {TABLE}",
        f"table {TABLE} {{",
        *_set("others", sets.get(OTHERS, ())),
        *_set("machines", sets.get(MACHINES, ())),
        *_set("control_planes", sets.get(CONTROL_PLANES, ())),
        "set web {",
        "typeof ip daddr . tcp dport",
        *_elements(f"{address} . {port}" for address, port in pages),
        "}",
        *_set("members", members),
        "map group_of {",
        "typeof ip saddr : verdict",
        *_elements(f"{address} : goto {chain}" for address, chain in members.items()),
        "}",
        *(line for name, found in groups.items() for line in _group(rules, name, numbers[name], found)),
        "chain from_pod {",
        # One lookup for all groups. A rule per group would cost each packet more with every group.
        "ip saddr vmap @group_of",
        "ip saddr @others accept",
        "ip daddr @members drop",
        *_closed(rules),
        "}",
        "chain forward {",
        "type filter hook forward priority -5; policy accept;",
        # Only the first packet of a connection is judged, so that a notebook's own downloads get their answers.
        "ip daddr . tcp dport @web tcp flags & (syn | ack) == syn ip saddr != @control_planes drop",
        f"ip saddr {rules.cidr} jump from_pod",
        "}",
        "chain input {",
        "type filter hook input priority -5; policy accept;",
        *_ports(rules, f"ip saddr {rules.cidr} ip saddr != @others"),
        "}",
        "}",
    ]
    return "\n".join(lines) + "\n" + _IPV6


def _group(rules: Rules, name: str, chain: str, addresses: Iterable[IPv4Address]) -> Iterator[str]:
    yield from _set(f"{chain}_pods", addresses)
    yield f"chain {chain} {{"
    yield f'ip daddr @{chain}_pods accept comment "{name}"'
    yield f"ip daddr {rules.cidr} ip daddr != @others drop"
    yield from _closed(rules)
    yield "accept"
    yield "}"


def _closed(rules: Rules) -> Iterator[str]:
    return _ports(rules, "ip daddr @machines")


def _ports(rules: Rules, of: str) -> Iterator[str]:
    for protocol, ports in sorted(rules.ports.items()):
        if ports:
            yield f"{of} {protocol} dport {{ {', '.join(map(str, ports))} }} drop"


def _set(name: str, addresses: Iterable[IPv4Address]) -> Iterator[str]:
    # not `type ipv4_addr`: nft 1.0 crashes at such a set of a newer nft
    yield from (f"set {name} {{", "typeof ip saddr", *_elements(map(str, addresses)), "}")


def _elements(words: Iterable[str]) -> Iterator[str]:
    if joined := ", ".join(words):
        yield f"elements = {{ {joined} }}"
