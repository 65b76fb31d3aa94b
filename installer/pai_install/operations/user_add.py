"""Make a person a user, a member of groups."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from pai_install.errors import ExitCode, PaiError
from pai_install.operations.user import ASKED, USERS, UserOperation, user_group
from pai_install.plan.model import ClusterCall, ClusterCalls, HostStep, Plan, Step
from pai_install.plan.observation import Observation
from pai_install.site.groups import PlacedGroup, groups_of
from pai_install.site.model import Site
from pai_install.system.parameters import Parameter
from pai_install.users.changes import joining
from pai_install.users.model import MEMBER, NAMESPACE
from pai_install.users.read import name_of


class UserAdd(UserOperation):
    """Creates an account for a user and adds it to groups. Existing memberships stay."""

    name: ClassVar[str] = "user add"
    summary: ClassVar[str] = "Make a person a user: a member of groups, with access to their namespaces."

    groups: Annotated[tuple[str, ...], Parameter("--group", "GROUP,...", split=True)] = Field(
        description="Group of authentication.group-manager. Repeatable."
    )

    def plan(self, site: Site, observation: Observation) -> Plan:
        """One call for each object that is missing."""
        groups = [group for group in groups_of(site.services) if group.name in self.groups]
        _require_places(groups, observation)
        missing = tuple(joining(self.user, [user_group(group) for group in groups], self.found(observation)))
        nothing = f"{self.user}: a member of {', '.join(self.groups)} already"
        if not missing:
            return Plan((), observation.inventory, nothing=nothing)
        effects = tuple(one.effect for one in missing)
        calls = tuple(
            ClusterCall(self.user, one.title, "apply", {"objects": [one.object], "force": True}) for one in missing
        )
        step = Step("add", "Give the user access", (HostStep(self.user, (ASKED,), effects),), ClusterCalls(calls))
        return Plan((step,), observation.inventory, nothing=nothing)

    def question(self, plan: Plan, hosts: tuple[str, ...]) -> str:
        """Who gets what."""
        del plan, hosts
        return f"make {self.user} a member of {', '.join(self.groups)}"


def _require_places(groups: list[PlacedGroup], observation: Observation) -> None:
    """Raises PaiError if the cluster lacks the objects that `apply` creates for groups."""
    spaces, roles = observation.answers[len(USERS) :]
    there = set(map(name_of, spaces))
    missing = [it for it in (NAMESPACE, *(group.namespace for group in groups)) if it not in there]
    what = f"namespace {missing[0]}" if missing else "" if roles else f"role {MEMBER}"
    if what:
        raise PaiError(
            f"the cluster has no {what} yet",
            code="group-not-applied",
            remedy="pai-install apply makes it",
            exit_code=ExitCode.USAGE,
        )
