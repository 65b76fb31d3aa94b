"""Uncordon nodes."""

from __future__ import annotations

from typing import ClassVar

from pai_install.kube.labels import CORDONED_BY_HEALTH
from pai_install.kube.model import Node
from pai_install.operations.node_cordon import ASKED, NodeOperation, scheduling
from pai_install.plan.model import ClusterCalls, HostStep, Plan, Step
from pai_install.plan.observation import Observation
from pai_install.site.model import Site


class NodeUncordon(NodeOperation):
    """Uncordons nodes, regardless of who cordoned them."""

    name: ClassVar[str] = "node uncordon"
    summary: ClassVar[str] = "Uncordon nodes."

    def plan(self, site: Site, observation: Observation) -> Plan:
        """One call for each node that is out of scheduling."""
        del site
        out = [node for node in self.named(observation) if node.cordoned]
        nothing = f"{', '.join(self.nodes)}: in scheduling already"
        if not out:
            return Plan((), observation.inventory, nothing=nothing)
        hosts = tuple(HostStep(node.name, (ASKED,), ("pods start there again",), _impact(node)) for node in out)
        calls, back = (ClusterCalls(tuple(scheduling(node.name, stop=stop) for node in out)) for stop in (False, True))
        title = "Put nodes back into scheduling"
        step = Step("uncordon", title, hosts, calls, undo=back, undo_verb="node cordon")
        return Plan((step,), observation.inventory, nothing=nothing)


def _impact(node: Node) -> tuple[str, ...]:
    check = node.labels.get(CORDONED_BY_HEALTH)
    return (f"health cordoned the node because of {check}",) if check else ()
