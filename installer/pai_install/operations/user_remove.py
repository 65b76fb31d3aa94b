"""Take a user's access away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from pai_install.documents.validate import did_you_mean
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject
from pai_install.operations.user import ASKED, UserOperation, found_users, require_groups, require_name, user_group
from pai_install.plan.model import ClusterCall, ClusterCalls, HostStep, Plan, Step
from pai_install.plan.observation import Observation
from pai_install.site.groups import groups_of
from pai_install.site.model import Site
from pai_install.system.parameters import Parameter
from pai_install.users.changes import ADMINISTRATIONS, BINDINGS, departure
from pai_install.users.read import UserObjects, group_of, name_of, namespace_of

_STAYS = "jobs that run go on; an administrator stops them"


class UserRemove(UserOperation):
    """Takes a user out of groups, or out of the cluster with its account and kubeconfigs where no group is named."""

    name: ClassVar[str] = "user remove"
    summary: ClassVar[str] = "Remove a user from groups, or from all. Running jobs stay."

    groups: Annotated[tuple[str, ...], Parameter("--group", "GROUP,...", default="remove the user", split=True)] = (
        Field(default=(), description="Group that the user leaves. Repeatable.")
    )

    def require(self, site: Site) -> None:
        """Checks as `user add`. Without groups the site is not checked, because it may have lost them."""
        require_name(self.user)
        if self.groups:
            require_groups(site, self.groups)

    def plan(self, site: Site, observation: Observation) -> Plan:
        """Returns one call for each object, rights first. Raises PaiError for an unknown user."""
        everyone = found_users(observation)
        found = everyone.of(self.user)
        if not (found.accounts or found.memberships or found.administrations or found.marks):
            remedy = (
                did_you_mean(self.user, [user.name for user in everyone.users])
                or "list users with pai-install user list"
            )
            raise PaiError(
                f"cannot find user {self.user} in the cluster",
                code="unknown-user",
                remedy=remedy,
                exit_code=ExitCode.USAGE,
            )
        calls = self._from_groups(site, found) if self.groups else self._altogether(found)
        nothing = f"{self.user}: no member of {', '.join(self.groups)}"
        if not calls:
            return Plan((), observation.inventory, nothing=nothing)
        effects = tuple(call.title for call in calls)
        hosts = (HostStep(self.user, (ASKED,), effects, (_STAYS,)),)
        step = Step("remove", "Revoke access", hosts, ClusterCalls(calls), subject="user")
        return Plan((step,), observation.inventory, nothing=nothing)

    def question(self, plan: Plan, hosts: tuple[str, ...]) -> str:
        """Who loses what."""
        del plan, hosts
        return f"remove {self.user} from {', '.join(self.groups)}" if self.groups else f"remove the user {self.user}"

    def _altogether(self, found: UserObjects) -> tuple[ClusterCall, ...]:
        return (
            *self._unbinding(found.memberships, found.administrations),
            *self._deleting("secrets", found.marks, "End its kubeconfigs"),
            *self._deleting("serviceaccounts", found.accounts, "Delete the account"),
        )

    def _from_groups(self, site: Site, found: UserObjects) -> tuple[ClusterCall, ...]:
        ends = departure(found, self.groups, [user_group(group) for group in groups_of(site.services)])
        return self._unbinding(ends.memberships, ends.administrations)

    def _unbinding(self, memberships: Sequence[JsonObject], admin: Sequence[JsonObject]) -> tuple[ClusterCall, ...]:
        return (
            *self._deleting(ADMINISTRATIONS, admin, "No longer an administrator"),
            *(
                call
                for one in memberships
                for call in self._deleting(BINDINGS, [one], f"No longer a member of {group_of(one)}")
            ),
        )

    def _deleting(self, kind: str, items: Sequence[JsonObject], title: str) -> tuple[ClusterCall, ...]:
        refs = [Ref(kind, name_of(one), namespace_of(one)) for one in items]
        plain = [{"kind": ref.kind, "name": ref.name, "namespace": ref.namespace} for ref in refs]
        return (ClusterCall(self.user, title, "delete", {"refs": plain}),) if refs else ()
