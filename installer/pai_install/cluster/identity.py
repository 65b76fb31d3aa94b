"""Which machine is which node: nodes that nobody knows, machines that were renamed or installed anew. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.cluster.model import Node
from pai_install.cluster.view import view_of
from pai_install.plan.observed import Observed
from pai_install.site import Site


class IdentityKind(StrEnum):
    """UNKNOWN: a node that the layout does not have. RENAMED: a machine that is a node under another name.

    REINSTALLED: a machine with another machine id than the node of its name, so it was installed anew, or replaced.
    """

    UNKNOWN = "unknown-node"
    RENAMED = "renamed-machine"
    REINSTALLED = "reinstalled-machine"


@dataclass(frozen=True, slots=True)
class Identity:
    """A machine and a node that do not fit together.

    machine: host name in the layout, "" for UNKNOWN. seen, joined: what tells them apart or together: machine ids, or
    addresses of the machine and the node.
    """

    kind: IdentityKind
    machine: str
    node: str
    seen: str = ""
    joined: str = ""

    @property
    def finding(self) -> Finding:
        """The same as a finding."""
        return {
            IdentityKind.UNKNOWN: _unknown,
            IdentityKind.RENAMED: _renamed,
            IdentityKind.REINSTALLED: _reinstalled,
        }[self.kind](self)


def identities(site: Site, observed: Mapping[str, Observed]) -> tuple[Identity, ...]:
    """Every such pair, in the order of the cluster's nodes and then of the layout's machines.

    Empty where no control plane answered with the cluster's nodes. Machines that were not observed are compared by
    address only.
    """
    view = view_of(site, observed)
    if view is None or view.error:
        return ()
    known = {machine.hostname for machine in site.machines}
    strangers = [node for node in view.nodes if node.name not in known]
    renamed = [found for node in strangers if (found := _former(node, site, observed))]
    explained = {found.node for found in renamed}
    unknown = [Identity(IdentityKind.UNKNOWN, "", node.name) for node in strangers if node.name not in explained]
    nodes = {node.name: node for node in view.nodes}
    return (*unknown, *renamed, *_anew(site, nodes, observed))


def _former(node: Node, site: Site, observed: Mapping[str, Observed]) -> Identity | None:
    """The machine that is this node, under a name of before."""
    for machine in site.present_machines:
        seen = observed.get(machine.hostname)
        if seen is not None and seen.machine_id and seen.machine_id == node.machine_id:
            return Identity(IdentityKind.RENAMED, machine.hostname, node.name, seen.machine_id, node.machine_id)
    same = next((machine for machine in site.present_machines if node.address == machine.hostip), None)
    return Identity(IdentityKind.RENAMED, same.hostname, node.name, same.hostip, node.address) if same else None


def _anew(site: Site, nodes: Mapping[str, Node], observed: Mapping[str, Observed]) -> Iterator[Identity]:
    for machine in site.present_machines:
        seen, node = observed.get(machine.hostname), nodes.get(machine.hostname)
        if seen is None or node is None or not (seen.machine_id and node.machine_id):
            continue
        if seen.machine_id != node.machine_id:
            yield Identity(IdentityKind.REINSTALLED, machine.hostname, node.name, seen.machine_id, node.machine_id)


def _unknown(found: Identity) -> Finding:
    return Finding(
        found.kind,
        Verdict.WARN,
        found.node,
        "is a node of the cluster, and layout.yaml does not have it",
        expected="a machine of machine-list",
        remedy=f"add it to machine-list, or take it out: kubectl drain {found.node} --ignore-daemonsets, then "
        f"kubectl delete node {found.node}",
    )


def _renamed(found: Identity) -> Finding:
    return Finding(
        found.kind,
        Verdict.FAIL,
        found.machine,
        f"is node {found.node} already: under another name it would join twice",
        value=found.node,
        expected=found.machine,
        remedy=f"write hostname: {found.node}; or take the node out first: kubectl drain {found.node} "
        f"--ignore-daemonsets, kubectl delete node {found.node}, and sudo kubeadm reset --force on the machine",
    )


def _reinstalled(found: Identity) -> Finding:
    return Finding(
        found.kind,
        Verdict.WARN,
        found.machine,
        "was installed anew, or replaced, since it joined: its machine id is another",
        value=found.seen,
        expected=found.joined,
        remedy=f"pai-install apply lets it join again; if it is the same machine as before, look at /etc/machine-id, "
        f"and at the node with kubectl describe node {found.machine}",
    )
