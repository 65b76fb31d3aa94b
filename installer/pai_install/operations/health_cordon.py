"""Cordons machines that health found unhealthy, and releases recovered ones."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, InstanceOf

from pai_install.cluster.client import Select
from pai_install.health.act.cordon import Cordoning, plan_cordons
from pai_install.health.report import HealthReport
from pai_install.kube.model import Node
from pai_install.operations.operation import Operation
from pai_install.plan.model import ClusterCall, ClusterCalls, HostStep, Plan, Step
from pai_install.plan.observation import Observation
from pai_install.site.model import Site


class HealthCordon(Operation):
    """`health --act cordon` on a fresh health report. It is not in OPERATIONS, which has no report."""

    name: ClassVar[str] = "health --act cordon"
    summary: ClassVar[str] = "Cordon nodes that FAIL, uncordon recovered nodes."
    max_cordoned: float = Field(ge=0, le=1, description="Share of nodes that may be cordoned.")
    report: InstanceOf[HealthReport] = Field(exclude=True)

    @property
    def queries(self) -> tuple[Select, ...]:
        """All nodes."""
        return (Select(("nodes",)),)

    def decision(self, observation: Observation) -> Cordoning:
        """Which nodes to cordon and to release, and which not, with reasons."""
        return plan_cordons(tuple(map(Node.parse, observation.answers[0])), self.report, self.max_cordoned)

    def plan(self, site: Site, observation: Observation) -> Plan:
        """One call for each node to cordon or to release."""
        del site
        found = self.decision(observation)
        taken = {
            name: HostStep(name, (f"check {check} failed",), ("no new pods start there",))
            for name, check in found.cordon.items()
        }
        given_back = {
            name: HostStep(name, ("the machine has recovered",), ("pods start there again",)) for name in found.release
        }
        hosts = {**taken, **given_back}
        if not hosts:
            return Plan((), observation.inventory, nothing="no node is to be cordoned or released")
        calls = tuple(
            ClusterCall(
                name,
                "Cordon the node" if name in taken else "Uncordon the node",
                "patch",
                {"kind": "node", "name": name, "body": found.changes[name]},
            )
            for name in hosts
        )
        step = Step(
            "cordon", "Cordon unhealthy nodes, uncordon recovered nodes", tuple(hosts.values()), ClusterCalls(calls)
        )
        return Plan((step,), observation.inventory)
