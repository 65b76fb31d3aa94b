"""Common queries, names, and steps of the operations on users."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated

from pydantic import Field

from pai_install.cluster.client import Select
from pai_install.documents.validate import did_you_mean
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.operation import Operation
from pai_install.plan.model import ClusterCall, ClusterCalls, HostStep, Step
from pai_install.plan.observation import Observation
from pai_install.site.groups import PlacedGroup, administrates, groups_of
from pai_install.site.model import Site
from pai_install.site.user_names import near_name, why_no_name
from pai_install.system.parameters import Parameter
from pai_install.users.changes import UserGroup, joining
from pai_install.users.model import MEMBER, NAMESPACE, OWNER, unknown_groups
from pai_install.users.read import UserObjects, name_of

ASKED = "asked for"
# all that users have, in the order of the fields of UserObjects
USERS = (
    Select(("serviceaccounts",), NAMESPACE, OWNER),
    Select(("secrets",), NAMESPACE, OWNER),
    Select(("rolebindings.rbac.authorization.k8s.io",), labels=OWNER),
    Select(("clusterrolebindings.rbac.authorization.k8s.io",), labels=OWNER),
)
_PLACES = (
    Select(("namespaces",)),
    Select(("clusterroles.rbac.authorization.k8s.io",), fields=f"metadata.name={MEMBER}"),
)


class UsersOperation(Operation):
    """An operation on users. The cluster has the users, and the site has the groups."""

    @property
    def queries(self) -> tuple[Select, ...]:
        """Returns the queries of all users, and of the objects that groups need."""
        return (*USERS, *_PLACES)


class UserOperation(UsersOperation):
    """An operation on one user."""

    user: Annotated[str, Parameter(positional=True, metavar="NAME")] = Field(description="The user's name.")
    groups: Annotated[tuple[str, ...], Parameter("--group", "GROUP,...", split=True)] = ()

    def require(self, site: Site) -> None:
        """A name that a user can have, and groups of the site."""
        require_name(self.user)
        require_groups(site, self.groups)

    def found(self, observation: Observation) -> UserObjects:
        """Returns the cluster's objects of the user."""
        return found_users(observation).of(self.user)


def found_users(observation: Observation) -> UserObjects:
    """Returns the cluster's objects of all users."""
    return UserObjects(*observation.answers[: len(USERS)])


def additions(members: Mapping[str, Collection[str]], site: Site, observation: Observation) -> Step | None:
    """The step that makes users members of groups, with one call for each missing object. None if none is missing.

    members: user -> groups of the site. Raises PaiError before `apply` has made these groups.
    """
    groups = {group.name: group for group in groups_of(site.services)}
    _require_places([groups[name] for name in sorted(set().union(*members.values()))], observation)
    found = found_users(observation)
    hosts: list[HostStep] = []
    calls: list[ClusterCall] = []
    for user, names in members.items():
        missing = tuple(joining(user, [user_group(groups[name]) for name in groups if name in names], found.of(user)))
        if missing:
            hosts.append(HostStep(user, (ASKED,), tuple(one.effect for one in missing)))
        calls += [ClusterCall(user, one.title, "apply", {"objects": [one.object], "force": True}) for one in missing]
    return Step("add", "Give users access", tuple(hosts), ClusterCalls(tuple(calls)), subject="user") if calls else None


def _require_places(groups: Collection[PlacedGroup], observation: Observation) -> None:
    """Raises PaiError if the cluster lacks the objects that `apply` creates for groups."""
    spaces, roles = observation.answers[len(USERS) :]
    there = set(map(name_of, spaces))
    missing = [it for it in (NAMESPACE, *(group.namespace for group in groups)) if it not in there]
    what = f"namespace {missing[0]}" if missing else "" if roles else f"role {MEMBER}"
    if what:
        raise PaiError(
            f"cannot add the user: the cluster has no {what}",
            code="group-not-applied",
            remedy="run pai-install apply, which creates it",
            exit_code=ExitCode.USAGE,
        )


def user_group(group: PlacedGroup) -> UserGroup:
    """A group as changes of users need it."""
    return UserGroup(group.name, group.namespace, administrates(group))


def require_name(name: str) -> None:
    """Raises PaiError for a name that no user can have."""
    if why := why_no_name(name):
        near = near_name(name)
        remedy = f"for example {near}" if near else "for example alice, or team-a-2"
        raise PaiError(
            f"cannot use {name!r} as the name of a user: it {why}",
            code="user-name-invalid",
            remedy=remedy,
            exit_code=ExitCode.USAGE,
        )


def require_groups(site: Site, names: tuple[str, ...]) -> None:
    """Raises PaiError for the first name that is no group of the site."""
    known = [group.name for group in groups_of(site.services)]
    if not known:
        raise PaiError(
            "cannot manage users: this site has no groups",
            code="site-without-groups",
            remedy=(
                "define groups in authentication.group-manager of services-configuration.yaml, then run "
                "pai-install apply"
            ),
            exit_code=ExitCode.USAGE,
        )
    for name in unknown_groups(names, known):
        remedy = did_you_mean(name, known) or "pai-install validate shows the site's groups"
        raise PaiError(
            f"cannot find group {name} in this site", code="unknown-group", remedy=remedy, exit_code=ExitCode.USAGE
        )
