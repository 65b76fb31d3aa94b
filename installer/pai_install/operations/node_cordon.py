"""Cordon nodes. The recipe of docs/contributing/operation.md follows this file."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from pai_install.cluster.client import Select
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.labels import CORDONED_BY_HEALTH, CORDONED_BY_REBOOT, CORDONED_BY_UPGRADE
from pai_install.kube.model import Node
from pai_install.operations.operation import Operation
from pai_install.plan.model import ClusterCall, ClusterCalls, HostStep, Plan, Step
from pai_install.plan.observation import Observation
from pai_install.site.model import Site
from pai_install.system.parameters import Parameter

ASKED = "asked for"


class NodeOperation(Operation):
    """An operation on nodes that are named."""

    nodes: Annotated[tuple[str, ...], Parameter(positional=True, metavar="NODE...")] = Field(
        min_length=1, description="Names of nodes."
    )

    @property
    def queries(self) -> tuple[Select, ...]:
        """All nodes, so that a wrong name can be told from a right one."""
        return (Select(("nodes",)),)

    def named(self, observation: Observation) -> tuple[Node, ...]:
        """Returns the nodes with these names, without duplicates.

        Raises PaiError for an unknown name, with a similar one.
        """
        known = {node.name: node for node in map(Node.parse, observation.answers[0])}
        for name in self.nodes:
            if name not in known:
                raise _unknown(name, sorted(known))
        return tuple(known[name] for name in dict.fromkeys(self.nodes))


class NodeCordon(NodeOperation):
    """Cordons nodes. Running pods stay."""

    name: ClassVar[str] = "node cordon"
    summary: ClassVar[str] = "Cordon nodes. Running pods stay."

    def plan(self, site: Site, observation: Observation) -> Plan:
        """One call for each node that still takes pods."""
        del site
        steps = cordoning(self.named(observation))
        return Plan(steps, observation.inventory, nothing=f"{', '.join(self.nodes)}: out of scheduling already")


def cordoning(nodes: Sequence[Node]) -> tuple[Step, ...]:
    """Returns the step that cordons nodes, or () if all are cordoned."""
    hosts = tuple(HostStep(node.name, (ASKED,), (_effect(node),)) for node in nodes if _effect(node))
    if not hosts:
        return ()
    calls, back = (ClusterCalls(tuple(scheduling(one.host, stop=stop) for one in hosts)) for stop in (True, False))
    return (Step("cordon", "Cordon the nodes", hosts, calls, undo=back, undo_verb="node uncordon"),)


def _effect(node: Node) -> str:
    """Returns the effect of a cordon, or "" if a person has cordoned the node already."""
    if not node.cordoned:
        return "no new pods start there"
    return "health will no longer uncordon the node" if CORDONED_BY_HEALTH in node.labels else ""


def scheduling(name: str, *, stop: bool, mark: str = "") -> ClusterCall:
    """Returns a call that cordons or uncordons a node.

    mark: the label with the reason, until the node is uncordoned. Without one, a person makes the change, and the marks
    of `health --act cordon`, an upgrade, and a reboot are removed.
    """
    marks = (CORDONED_BY_HEALTH, CORDONED_BY_UPGRADE, CORDONED_BY_REBOOT)
    labels = {mark: "true" if stop else None} if mark else dict.fromkeys(marks)
    # A merge patch removes a field whose value is null.
    body = {"spec": {"unschedulable": True if stop else None}, "metadata": {"labels": labels}}
    title = "Cordon the node" if stop else "Uncordon the node"
    return ClusterCall(name, title, "patch", {"kind": "node", "name": name, "body": body})


def _unknown(name: str, known: Sequence[str]) -> PaiError:
    near = difflib.get_close_matches(name, known, n=1)
    listed = f"choose one of: {', '.join(known[:20])}"
    remedy = f"did you mean {near[0]}?" if near else listed
    return PaiError(
        f"cannot find node {name!r} in the cluster", code="unknown-node", remedy=remedy, exit_code=ExitCode.USAGE
    )
