"""Addresses of pods by namespace, and of machines, from what the API server says of them. Pure.

A node writes the status of its own pods. So the address of a pod counts only if it is one of its node.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network

from pai_install.agents.common.owner_ports import owner_ports, port_in
from pai_install.agents.common.values import Json, child, meta, rows, text

# of a group: this and its namespace. Namespaces have no dot.
GROUP = "group."
# of all other pods, of the machines in the pod network, and of the machines themselves
OTHERS, MACHINES = "others", "machines"
# of the control planes, and of pods with ports for their owners: control planes alone connect to these
CONTROL_PLANES, WEB = "control-planes", "web"
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_OVER = ("Succeeded", "Failed")
# of one machine that are read; the rest are no address of a cluster
_PER_MACHINE = 16


@dataclass(frozen=True)
class Pod:
    """A pod with an address in the pod network. since: its creation, as text that sorts. ports: for its owner alone."""

    since: str
    namespace: str
    node: str
    address: IPv4Address
    ports: tuple[int, ...] = ()


@dataclass(frozen=True)
class Machine:
    """A node. network: of its pods."""

    network: IPv4Network | None
    addresses: tuple[IPv4Address, ...]
    control_plane: bool = False

    @property
    def in_pod_network(self) -> tuple[IPv4Address, ...]:
        """Its own addresses there: flannel and the bridge of a node have the first two of its network."""
        return () if self.network is None else (self.network[0], self.network[1])


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
        # A pod with hostNetwork has the address of its machine, which is in no group.
        if address is None or spec.get("hostNetwork") is True or status.get("phase") in _OVER:
            self.pods.pop(meta(item, "uid"), None)
            return
        since, node = meta(item, "creationTimestamp"), text(spec.get("nodeName"))
        self.pods[meta(item, "uid")] = Pod(since, meta(item, "namespace"), node, address, owner_ports(item))

    def see_machine(self, item: Json) -> None:
        """Takes the state of a node."""
        named = rows(child(item, "status").get("addresses"))[:_PER_MACHINE]
        found = (_address(entry.get("address")) for entry in named)
        network = _network(child(item, "spec").get("podCIDR"))
        control_plane = _CONTROL_PLANE in child(child(item, "metadata"), "labels")
        own = tuple(one for one in found if one is not None)
        self.machines[meta(item, "name")] = Machine(network, own, control_plane)

    def published(self) -> Mapping[str, str]:
        """Returns name of a set -> its addresses in order. Every address is in one set of pods.

        The ports for owners come first: a pod is reached once it is in the set of its group.
        """
        owners: dict[IPv4Address, Pod | None] = {}
        # the newest pod has an address that was another's before
        for pod in sorted(self.pods.values(), key=lambda it: it.since):
            machine = self.machines.get(pod.node)
            if machine is not None and machine.network is not None and pod.address in machine.network:
                owners[pod.address] = pod
        owners.update(dict.fromkeys(one for machine in self.machines.values() for one in machine.in_pod_network))
        sets: dict[str, list[IPv4Address]] = {OTHERS: []}
        sets.update({GROUP + namespace: [] for namespace in self.namespaces})
        for address, owner in owners.items():
            group = owner is not None and owner.namespace in self.namespaces
            sets[GROUP + owner.namespace if owner is not None and group else OTHERS].append(address)
        machines = self.machines.values()
        sets[MACHINES] = list({one for machine in machines for one in machine.addresses})
        leading = (machine for machine in machines if machine.control_plane)
        sets[CONTROL_PLANES] = list({one for it in leading for one in (*it.addresses, *it.in_pod_network)})
        pages = sorted((address, port) for address, pod in owners.items() if pod is not None for port in pod.ports)
        web = {WEB: " ".join(f"{address}:{port}" for address, port in pages)}
        return {**web, **{name: " ".join(map(str, sorted(found))) for name, found in sets.items()}}


def read_pages(words: str) -> tuple[tuple[IPv4Address, int], ...]:
    """Returns the addresses and ports of a published set. A word that is none is left out."""
    found = (word.partition(":") for word in words.split())
    pages = ((_address(address), port_in(port)) for address, _, port in found)
    return tuple((address, port) for address, port in pages if address is not None and port)


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
