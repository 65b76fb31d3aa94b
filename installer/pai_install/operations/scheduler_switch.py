"""The switch to another batch scheduler: the objects of the old one are removed, then the new one is installed."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from pai_install.checks.finding import Finding
from pai_install.operations.install import Install
from pai_install.operations.operation import Operation
from pai_install.operations.scheduler_step import switch_step
from pai_install.plan.changes import RefusedChange
from pai_install.plan.model import Plan
from pai_install.plan.observation import Observation, require_leader
from pai_install.scheduling.model import Backend
from pai_install.site.model import Site


class SchedulerSwitch(Operation):
    """Ends the old scheduler's jobs, then installs the site with the new scheduler.

    The planned site already has the new scheduler, and a step writes it to the site's file. It is not in OPERATIONS,
    because the cluster's objects are queried first.
    """

    name: ClassVar[str] = "scheduler switch"
    summary: ClassVar[str] = "Replace the batch scheduler and remove the old one."
    configures: ClassVar[bool] = True
    to: Backend = Field(description="New scheduler.")
    before: Backend = Field(description="The one that the cluster has.")
    edits: bool = Field(description="Whether the site's file has yet to say so.")
    force: bool = Field(default=False, description="End the jobs that run or wait.")

    def watched(self, site: Site) -> tuple[str, ...]:
        """All machines, as an installation does."""
        return Install().watched(site)

    def refused_changes(self, site: Site, observation: Observation) -> tuple[RefusedChange, ...]:
        """Those of an installation."""
        return Install().refused_changes(site, observation)

    def plan(self, site: Site, observation: Observation) -> Plan:
        """Returns the end of the old scheduler's jobs and the edit, if needed, then the installation.

        Raises PaiError if the machine that applies add-ons is unreachable.
        """
        plan = Install().plan(site, observation)
        if self.before == self.to and not self.edits:
            return plan
        leader = site.control_planes[0].hostname
        require_leader(leader, observation.unreachable, observation.machines)
        step = switch_step(site, self.before, self.to, edits=self.edits, force=self.force)
        return replace(plan, steps=(step, *plan.steps))

    def known(self, site: Site, observation: Observation, plan: Plan) -> tuple[Finding, ...]:
        """Those of an installation."""
        return Install().known(site, observation, plan)

    def question(self, plan: Plan, hosts: tuple[str, ...]) -> str:
        """Returns the confirmation question."""
        del hosts
        ending = ", ending every job that runs or waits," if self.force and self.before != self.to else ""
        return f"replace {self.before} by {self.to}{ending} in {len(plan.steps)} phases"
