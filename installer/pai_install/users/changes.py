"""Objects to add and to delete when a user joins or leaves groups, for the controller host and the console. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject
from pai_install.users.model import NAMESPACE
from pai_install.users.objects import account, administration, membership
from pai_install.users.read import UserObjects, effective, group_of, name_of, namespace_of

Object = dict[str, Any]

ACCOUNTS, MARKS = "serviceaccounts", "secrets"
BINDINGS, ADMINISTRATIONS = (
    "rolebindings.rbac.authorization.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
)


@dataclass(frozen=True, slots=True)
class UserGroup:
    """A group of the site. administrators: whether its members administrate."""

    name: str
    namespace: str
    administrators: bool = False


@dataclass(frozen=True, slots=True)
class Joining:
    """One object that a user needs. effect, title: for people."""

    effect: str
    title: str
    object: Object


def joining(user: str, groups: Collection[UserGroup], found: UserObjects) -> Iterator[Joining]:
    """Yields what is missing to make the user a member of these groups. found: what the user has."""
    if not found.accounts:
        yield Joining("a user of that name, who has no kubeconfig yet", "Make the account", account(user))
    there = {namespace_of(one) for one in found.memberships if effective(one, user)}
    for group in groups:
        if group.namespace not in there:
            effect = f"a member of {group.name}: submits jobs in the namespace {group.namespace}"
            yield Joining(effect, f"Bind to {group.name}", membership(user, group.name, group.namespace))
    admin = any(effective(one, user) for one in found.administrations)
    if not admin and any(group.administrators for group in groups):
        effect = "an administrator: sees and stops the jobs of all users"
        yield Joining(effect, "Bind to the administrators", administration(user))


def departure(found: UserObjects, left: Collection[str], groups: Collection[UserGroup]) -> UserObjects:
    """What to delete when a user leaves some groups. left: their names. groups: of the site.

    It stays an administrator as long as one group that it stays in makes it one.
    """
    memberships = [one for one in found.memberships if group_of(one) in left]
    stays = {group_of(one) for one in found.memberships} - set(left)
    admins = {group.name for group in groups if group.administrators}
    return UserObjects((), (), memberships, () if stays & admins else found.administrations)


def refs_of(found: UserObjects, *, marks: bool = True) -> tuple[Ref, ...]:
    """The objects to delete, rights first. marks: of kubeconfigs, which also end with the account."""
    kinds = (
        (ADMINISTRATIONS, found.administrations),
        (BINDINGS, found.memberships),
        (MARKS, found.marks if marks else ()),
        (ACCOUNTS, found.accounts),
    )
    return tuple(_ref(kind, item) for kind, items in kinds for item in items)


def _ref(kind: str, item: JsonObject) -> Ref:
    return Ref(kind, name_of(item), namespace_of(item) if kind != ADMINISTRATIONS else "")


def account_ref(user: str) -> Ref:
    """The account of a user."""
    return Ref("serviceaccount", user, NAMESPACE)
