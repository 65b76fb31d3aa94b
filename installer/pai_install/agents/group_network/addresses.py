"""Addresses of pods by namespace, and of machines, from what the API server says of them. Pure.

A node writes the status of its own pods. So the address of a pod counts only if it is one of its node.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network

from pai_install.agents.common.values import Json, child, meta, rows, text

# of a group: this and its namespace. Namespaces have no dot.
GROUP = "group."
# of all other pods, of the machines in the pod network, and of the machines themselves
OTHERS, MACHINES = "others", "machines"
_OVER = ("Succeeded", "Failed")
# of one machine that are read; the rest are no address of a cluster
_PER_MACHINE = 16


@dataclass(frozen=True)
class Pod:
    """A pod with an address in the pod network. since: its creation, as text that sorts."""

    since: str
    namespace: str
    node: str
    address: IPv4Address


@dataclass(frozen=True)
class Machine:
    """A node. network: of its pods."""

    network: IPv4Network | None
    addresses: tuple[IPv4Address, ...]


@dataclass
class Directory:
    """All pods and nodes. namespaces: of groups."""

    namespaces: Collection[str]
    pods: dict[str, Pod] = field(default_factory=dict)
    machines: dict[str, Machine] = field(default_factory=dict)

    def see_pod(self, item: Json) -> None:
        """Takes the state of a pod."""
        spec, status = child(item, "spec"), child(item, "status")
        address = _address(status.get("podIP"))
        if address is None or spec.get("hostNetwork") is True or status.get("phase") in _OVER:
            self.pods.pop(meta(item, "uid"), None)
            return
        since = meta(item, "creationTimestamp")
        self.pods[meta(item, "uid")] = Pod(since, meta(item, "namespace"), text(spec.get("nodeName")), address)

    def see_machine(self, item: Json) -> None:
        """Takes the state of a node."""
        named = rows(child(item, "status").get("addresses"))[:_PER_MACHINE]
        found = (_address(entry.get("address")) for entry in named)
        network = _network(child(item, "spec").get("podCIDR"))
        self.machines[meta(item, "name")] = Machine(network, tuple(one for one in found if one is not None))

    def published(self) -> Mapping[str, str]:
        """Returns name of a set -> its addresses in order. Every address is in one set of pods."""
        owners: dict[IPv4Address, str] = {}
        # the newest pod has an address that was another's before
        for pod in sorted(self.pods.values(), key=lambda it: it.since):
            machine = self.machines.get(pod.node)
            if machine is not None and machine.network is not None and pod.address in machine.network:
                owners[pod.address] = GROUP + pod.namespace if pod.namespace in self.namespaces else OTHERS
        # flannel and the bridge of a node have the first two addresses of its network
        for machine in self.machines.values():
            if machine.network is not None:
                owners.update({machine.network[number]: OTHERS for number in range(2)})
        sets: dict[str, list[IPv4Address]] = {OTHERS: [], MACHINES: []}
        sets.update({GROUP + namespace: [] for namespace in self.namespaces})
        for address, name in owners.items():
            sets[name].append(address)
        sets[MACHINES] = list({one for machine in self.machines.values() for one in machine.addresses})
        return {name: " ".join(map(str, sorted(found))) for name, found in sets.items()}


def read_addresses(words: str) -> tuple[IPv4Address, ...]:
    """Returns the addresses of a published set. A word that is none is left out."""
    return tuple(one for one in map(_address, words.split()) if one is not None)


def _address(value: object) -> IPv4Address | None:
    try:
        return IPv4Address(text(value))
    except ValueError:
        return None


def _network(value: object) -> IPv4Network | None:
    try:
        network = IPv4Network(text(value))
    except ValueError:
        return None
    return network if network.num_addresses > 2 else None
