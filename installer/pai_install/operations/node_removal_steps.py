"""How machines leave the cluster: the steps that removing, replacing and cleaning have in common. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from pai_install.kube.model import Node
from pai_install.operations.removed_machines import fence, with_removed
from pai_install.plan.model import ClusterCall, ClusterCalls, HostStep, LocalWork, Step
from pai_install.plan.observed import Observed
from pai_install.plan.reset import reset

LEAVE, CLEAN, FORGET, WRITE = "leave", "clean", "forget", "layout"


def dirty(seen: Observed) -> bool:
    """Whether a machine has anything of ours."""
    return bool(seen.roles) or seen.kubernetes.node or seen.kubernetes.joined


def removal_step(nodes: Sequence[Node], removed: Mapping[str, str], why: str) -> tuple[Step, ...]:
    """The step that takes nodes out of Kubernetes permanently. removed: who is refused already, as in fence.py."""
    if not nodes:
        return ()
    hosts = tuple(HostStep(node.name, (why,), ("its login makes no node again",)) for node in nodes)
    return (Step(LEAVE, "Remove the nodes from Kubernetes", hosts, ClusterCalls(tuple(_calls(nodes, removed)))),)


def _calls(nodes: Sequence[Node], removed: Mapping[str, str]) -> Iterator[ClusterCall]:
    known = dict(removed)
    for node in nodes:
        known = with_removed(known, {node.name: node.machine_id})
        # The refusal is first: between the two calls, the kubelet could create its node again.
        yield ClusterCall(node.name, "Refuse its login", "apply", {"objects": fence(known), "force": True})
        refs = [{"kind": "node", "name": node.name, "namespace": ""}]
        yield ClusterCall(node.name, "Remove the node", "delete", {"refs": refs})


def cleaning(
    machines: Mapping[str, Observed],
    names: Collection[str],
    why: str,
    *,
    needs: tuple[str, ...] = (),
    data: bool = False,
) -> tuple[Step, ...]:
    """Returns the step that resets the named machines with files of pai-install.

    machines: responding ones. data: also delete images and other data.
    """
    effects = ("removes what pai-install made there", "its data goes too" if data else "images and other data stay")
    hosts = tuple(HostStep(name, (why,), effects) for name in names if name in machines and dirty(machines[name]))
    if not hosts:
        return ()
    return (Step(CLEAN, "Clean the machines", hosts, reset(data=data), needs),)


def forgetting(names: Sequence[str], how: str, why: str, addresses: Mapping[str, str]) -> tuple[Step, ...]:
    """Returns the step that edits layout.yaml and deletes the controller host's data about the machines.

    how: "remove" the entries, mark them "absent", "keep" them, or keep them for other hardware ("replaced"). addresses:
    machine -> address in the layout.
    """
    if not names:
        return ()
    hosts = tuple(HostStep(name, (why,)) for name in names)
    title = {"remove": "Remove the machines from layout.yaml", "absent": "Mark the machines as absent in layout.yaml"}
    work = LocalWork(FORGET, {"how": how, "addresses": dict(addresses)})
    return (Step(FORGET, title.get(how, "Delete the machines' history"), hosts, work, needs=(LEAVE, CLEAN)),)


def writing(before: str, text: str, leader: str) -> tuple[Step, ...]:
    """Returns the step that writes layout.yaml if it is unchanged. leader: host of the step."""
    work = LocalWork(WRITE, {"before": before, "text": text})
    hosts = (HostStep(leader, ("the command changes layout.yaml",)),)
    return (Step(WRITE, "Write layout.yaml", hosts, work),)
