"""Whether the cluster's nodes are the machines of the layout: renamed, reinstalled, or of no machine. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.health.cluster.view import view_of
from pai_install.kube.model import Node
from pai_install.plan.observed import Observed
from pai_install.site import Site
from pai_install.site.hived_cells import hived_of

CHECK = "node-identity"


def renamed(site: Site, observed: Mapping[str, Observed]) -> dict[str, str]:
    """Machine of the layout -> the other name under which it is in the cluster.

    Either its kubelet has a certificate for that name, or a node that the layout does not have has its machine id
    and its address. A machine id alone is no proof: copies of a disk share it.
    """
    strays = {(node.machine_id, node.address): node.name for node in _strays(site, observed) if node.machine_id}
    found = {}
    for machine in site.present_machines:
        seen = observed.get(machine.hostname)
        if seen is None:
            continue
        name = seen.kubernetes.node_name or strays.get((seen.machine_id, machine.hostip), "")
        if name and name != machine.hostname:
            found[machine.hostname] = name
    return found


def identity_findings(site: Site, observed: Mapping[str, Observed]) -> tuple[Finding, ...]:
    """Nodes that the layout does not have, and machines that were reinstalled since they joined."""
    return (
        *_unknown_nodes(site, observed),
        *_reinstalled(site, observed),
        *_moved(site, observed),
        *_of_another_type(site, observed),
    )


def _nodes(site: Site, observed: Mapping[str, Observed]) -> tuple[Node, ...]:
    view = view_of(site, observed)
    return view.nodes if view is not None and not view.error else ()


def _strays(site: Site, observed: Mapping[str, Observed]) -> tuple[Node, ...]:
    names = {machine.hostname for machine in site.machines}
    return tuple(node for node in _nodes(site, observed) if node.name not in names)


def _unknown_nodes(site: Site, observed: Mapping[str, Observed]) -> Iterator[Finding]:
    machines = {name: host for host, name in renamed(site, observed).items()}
    for node in _strays(site, observed):
        delete = f"kubectl drain {node.name}, kubectl delete node {node.name}"
        if node.name in machines:
            message = f"layout.yaml has another name for this machine: {machines[node.name]}"
            remedy = (
                f"set hostname: {node.name} in layout.yaml. To rename it, run pai-install node remove {node.name}, "
                f"write the new name, and run pai-install node add {machines[node.name]}"
            )
            yield Finding(CHECK, Verdict.WARN, node.name, message, node.name, machines[node.name], remedy)
        else:
            message = "the node is missing in layout.yaml"
            remedy = f"add the machine to layout.yaml, or remove the node: {delete}"
            yield Finding(CHECK, Verdict.WARN, node.name, message, node.address, "a machine of layout.yaml", remedy)


def _reinstalled(site: Site, observed: Mapping[str, Observed]) -> Iterator[Finding]:
    for node in _nodes(site, observed):
        seen = observed.get(node.name)
        if seen is None or not (node.machine_id and seen.machine_id) or node.machine_id == seen.machine_id:
            continue
        message = "the machine id changed after this node joined"
        again = "run sudo systemctl restart kubelet on it" if seen.kubernetes.node else "run pai-install apply"
        remedy = (
            f"check hostip. If it is the right machine (reinstalled), {again}. "
            f"If the hardware is new, run pai-install node replace {node.name}"
        )
        yield Finding(CHECK, Verdict.WARN, node.name, message, seen.machine_id, node.machine_id, remedy)


def _moved(site: Site, observed: Mapping[str, Observed]) -> Iterator[Finding]:
    """Yields workers with different addresses in layout and cluster. For control-plane nodes, this is a
    refused change.
    """
    layout = {machine.hostname: machine.hostip for machine in site.present_machines if not machine.control_plane}
    for node in _nodes(site, observed):
        wanted, seen = layout.get(node.name, node.address), observed.get(node.name)
        same = seen is not None and bool(node.machine_id) and seen.machine_id == node.machine_id
        if not (node.address and node.address != wanted and same):
            continue
        message = f"the address of the same machine changes from {node.address} to {wanted}"
        remedy = f"run apply to restart its kubelet with the new address, or set hostip: {node.address}"
        yield Finding(CHECK, Verdict.WARN, node.name, message, node.address, wanted, remedy)


def _of_another_type(site: Site, observed: Mapping[str, Observed]) -> Iterator[Finding]:
    """Nodes that schedulers know by another machine type than the layout's. The names of HiveD's block are free."""
    if site.services.scheduler is None and hived_of(site) is not None:
        return
    layout = {machine.hostname: machine.sku for machine in site.present_machines}
    for node in _nodes(site, observed):
        wanted = layout.get(node.name, node.sku)
        if not (node.sku and wanted != node.sku):
            continue
        message = f"the machine type changes from {node.sku} to {wanted}"
        remedy = (
            f"if it is the same machine, run pai-install node drain {node.name}, apply, and node uncordon. If "
            f"the hardware is new, run pai-install node replace {node.name}"
        )
        yield Finding(CHECK, Verdict.WARN, node.name, message, node.sku, wanted, remedy)
