"""Make the machines what the site says, and prove it."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from pai_install.checks.finding import Finding
from pai_install.cluster.conditions import cluster_findings
from pai_install.operations.operation import Operation
from pai_install.operations.verify import proof
from pai_install.plan.model import Plan, Step
from pai_install.plan.observation import Observation
from pai_install.plan.phases import PHASE_NAMES, VERIFY, require_phases
from pai_install.plan.planner import make_plan
from pai_install.site.model import Site
from pai_install.site.selection import require_present, watched


class Install(Operation):
    """Everything that `apply` does."""

    name: ClassVar[str] = "apply"
    summary: ClassVar[str] = "Make the machines what the site says, and prove it."
    configures: ClassVar[bool] = True
    phases: tuple[str, ...] = Field((), description=f"Only these, of {', '.join(PHASE_NAMES)}; empty: all.")
    limit: tuple[str, ...] = Field((), description="Only these machines of the site; empty: all.")

    def require(self, site: Site) -> None:
        """The machines must be present ones of the site; a phase must be one."""
        require_phases(self.phases)
        require_present(site, self.limit)

    def watched(self, site: Site) -> tuple[str, ...]:
        """The machines that were named and the control planes; all where none was."""
        return watched(site, self.limit)

    def plan(self, site: Site, observation: Observation) -> Plan:
        """The phases with work, and the proof of what they change or of what earlier runs left unproven."""
        plan = make_plan(
            site,
            observation.inventory,
            observation.machines,
            unreachable=observation.unreachable,
            phases=self.phases,
            limit=self.limit,
        )
        return replace(plan, steps=(*plan.steps, *self._proof(site, observation, plan)))

    def _proof(self, site: Site, observation: Observation, plan: Plan) -> tuple[Step, ...]:
        if self.phases and VERIFY.name not in self.phases:
            return ()
        if not plan.empty:
            return proof(site, observation, "after a change")
        if VERIFY.name in self.phases:
            return proof(site, observation, "asked for")
        return proof(site, observation, "with those that are not proven") if self._unproven(observation) else ()

    def _unproven(self, observation: Observation) -> bool:
        names = self.limit or observation.machines
        return any(name in observation.unproven for name in names if name in observation.machines)

    def known(self, site: Site, observation: Observation, plan: Plan) -> tuple[Finding, ...]:
        """How the cluster stands where nothing is to be done; where something is, the run proves it at its end."""
        return standing(site, observation) if plan.empty else ()

    def question(self, plan: Plan, hosts: tuple[str, ...]) -> str:
        """In words of an installation."""
        return f"run {len(plan.steps)} phases on {len(hosts)} machines"


def standing(site: Site, observation: Observation) -> tuple[Finding, ...]:
    """What the observation says of the cluster."""
    inventory = observation.inventory
    first = inventory.host_vars[site.control_planes[0].hostname]
    version = {**inventory.shared_vars, **first}["control_plane_version"]
    return cluster_findings(site, version, observation.machines, now=observation.at)
