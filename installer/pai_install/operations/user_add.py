"""Make a person a user, a member of groups."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from pai_install.operations.user import UserOperation, additions
from pai_install.plan.model import Plan
from pai_install.plan.observation import Observation
from pai_install.site.model import Site
from pai_install.system.parameters import Parameter


class UserAdd(UserOperation):
    """Creates an account for a user and adds it to groups. Existing memberships stay."""

    name: ClassVar[str] = "user add"
    summary: ClassVar[str] = "Add a user to groups, with access to their namespaces."

    groups: Annotated[tuple[str, ...], Parameter("--group", "GROUP,...", split=True)] = Field(
        description="Group of authentication.group-manager. Repeatable."
    )

    def plan(self, site: Site, observation: Observation) -> Plan:
        """One call for each object that is missing."""
        step = additions({self.user: self.groups}, site, observation)
        nothing = f"{self.user}: a member of {', '.join(self.groups)} already"
        return Plan((step,) if step else (), observation.inventory, nothing="" if step else nothing)

    def question(self, plan: Plan, hosts: tuple[str, ...]) -> str:
        """Who gets what."""
        del plan, hosts
        return f"add {self.user} to {', '.join(self.groups)}"
