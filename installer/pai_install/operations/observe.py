"""Only observe: for verbs that report, where a plan is not asked for or cannot be made."""

from __future__ import annotations

from typing import ClassVar

from pai_install.operations.operation import Operation
from pai_install.plan.model import Plan
from pai_install.plan.observation import Observation
from pai_install.site.model import Site
from pai_install.site.selection import watched


class Look(Operation):
    """An observation without a plan, so it needs no components. It is not in OPERATIONS, because it is no command."""

    name: ClassVar[str] = "look"
    summary: ClassVar[str] = "Observe all machines."

    def watched(self, site: Site) -> tuple[str, ...]:
        """All present machines."""
        return watched(site, ())

    def plan(self, site: Site, observation: Observation) -> Plan:
        """An empty one."""
        del site
        return Plan((), observation.inventory, observation.unreachable)
