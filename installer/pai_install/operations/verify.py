"""Prove that the cluster works."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from pai_install.operations.operation import Operation
from pai_install.plan.lead import lead_of, led_by
from pai_install.plan.model import HostStep, LocalWork, Plan, Playbook, Step
from pai_install.plan.observation import Observation
from pai_install.plan.phases import VERIFY
from pai_install.site.model import Site
from pai_install.site.selection import require_present, watched

HEALTH = "health"


class Verify(Operation):
    """Runs every check of a finished installation."""

    name: ClassVar[str] = "verify"
    summary: ClassVar[str] = "Prove that the cluster works: nodes, pods, DNS, services, runtimes, time."
    configures: ClassVar[bool] = True
    limit: tuple[str, ...] = Field((), description="Only these machines of the site; empty: all.")

    def require(self, site: Site) -> None:
        """The machines must be present ones of the site."""
        require_present(site, self.limit)

    def watched(self, site: Site) -> tuple[str, ...]:
        """The machines that were named and the control planes; all where none was."""
        return watched(site, self.limit)

    def plan(self, site: Site, observation: Observation) -> Plan:
        """Proves it on every machine that answered."""
        lead = lead_of(site, observation.machines)
        steps = proof(site, observation, "asked for")
        return Plan(steps, led_by(observation.inventory, lead), observation.unreachable, lead)


def proof(site: Site, observation: Observation, reason: str) -> tuple[Step, ...]:
    """The steps that prove the cluster, then the machines' health; none where no machine answered.

    reason: that of the machines of which nothing else is known to be unproven.
    """
    names = [machine.hostname for machine in site.present_machines if machine.hostname in observation.machines]
    hosts = tuple(HostStep(name, (_reason(observation, name, reason),)) for name in names)
    if not hosts:
        return ()
    return (
        Step(VERIFY.name, VERIFY.title, hosts, Playbook(VERIFY.playbook), VERIFY.needs, proves=True),
        Step(HEALTH, "Check the health of the machines", hosts, LocalWork(HEALTH), (VERIFY.name,), proves=True),
    )


def _reason(observation: Observation, name: str, otherwise: str) -> str:
    why = observation.unproven.get(name)
    return f"not proven: {why}" if why else otherwise
