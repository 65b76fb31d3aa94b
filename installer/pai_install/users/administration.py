"""Users that administrators make and remove: the rights for it, and the policies that limit these. Pure.

A role cannot say which accounts and bindings: without the policies, an administrator could join any namespace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pai_install.scheduling.admission import RequestKind, Rule, in_force, literal, policy
from pai_install.site.user_names import MAX_NAME, NAME_PATTERN
from pai_install.users.model import ADMIN, GROUP, MEMBER, NAMESPACE, OWNER
from pai_install.users.policies import OF_USERS, user_variables
from pai_install.users.rights import RBAC

Object = dict[str, Any]

_ALL = ("CREATE", "UPDATE", "DELETE")
_PREFIX = "pai-user-"
_NAME = "object.metadata.name"
_OWN = f"has(object.metadata.labels) && {literal(OWNER)} in object.metadata.labels"


def administration_policies(groups: Mapping[str, str]) -> Iterator[Object]:
    """Policies on accounts and bindings, in all namespaces. groups: name -> namespace."""
    # In all namespaces: RBAC of an administrator permits accounts everywhere, and only the policy says where.
    yield from in_force(_accounts(), None)
    yield from in_force(_memberships(groups), None)
    yield from in_force(_administrators(), None)


def _accounts() -> Object:
    rules = (
        Rule(
            f"request.namespace == {literal(NAMESPACE)}",
            f"'administrators make users in the namespace {NAMESPACE} alone'",
        ),
        Rule(
            f"object == null || ({_OWN} && object.metadata.labels[{literal(OWNER)}] == {_NAME} && "
            f"{_NAME}.matches({literal(f'^{NAME_PATTERN}$')}) && size({_NAME}) <= {MAX_NAME})",
            f"'a user has a name of lower-case letters, digits, and -, and the same name in the label {OWNER}'",
        ),
        Rule(
            "object == null || (has(object.automountServiceAccountToken) && !object.automountServiceAccountToken && "
            "!has(object.secrets) && !has(object.imagePullSecrets) && !has(object.metadata.ownerReferences) && "
            "!has(object.metadata.finalizers))",
            "'the account of a user has automountServiceAccountToken: false, and no secrets, owners, or finalizers'",
        ),
        Rule(
            "request.operation != 'DELETE' || oldObject.metadata.name != variables.user",
            "'an administrator does not remove themselves: another administrator does it'",
        ),
    )
    kind = RequestKind("", "v1", "serviceaccounts", _ALL)
    return policy("pai-users-accounts", kind, rules, user_variables(), OF_USERS)


def _memberships(groups: Mapping[str, str]) -> Object:
    of_space: dict[str, list[str]] = {}
    for name, space in groups.items():
        of_space.setdefault(space, []).append(name)
    note = f"object.metadata.annotations[?{literal(GROUP)}].orValue('')"
    rules = (
        Rule(
            f"request.namespace in {literal(list(of_space))}",
            "'administrators bind users in the namespaces of groups alone'",
        ),
        *_bindings(MEMBER),
        Rule(
            f"object == null || (has(object.metadata.annotations) && {literal(of_space)}[?request.namespace]"
            f".orValue([]).exists(g, g == {note}))",
            f"'the annotation {GROUP} names the group of the namespace'",
        ),
    )
    return policy("pai-users-members", _kind("rolebindings"), rules, user_variables(), OF_USERS)


def _administrators() -> Object:
    """Who acts is an administrator and stays one: so the last one is never taken away."""
    own = f"oldObject.metadata.name == {literal(_PREFIX)} + variables.user"
    rules = (
        *_bindings(ADMIN),
        Rule(
            f"request.operation != 'DELETE' || !({own})",
            "'an administrator does not give up their own rights: another administrator takes them'",
        ),
    )
    return policy("pai-users-administrators", _kind("clusterrolebindings"), rules, user_variables(), OF_USERS)


def _kind(resource: str) -> RequestKind:
    return RequestKind(RBAC, "v1", resource, _ALL)


def _bindings(role: str) -> Iterator[Rule]:
    """Yields the rules that a binding is one of pai-install's, of one user to one role."""
    for which in ("object", "oldObject"):
        ref = f"{which}.roleRef"
        yield Rule(
            f"{which} == null || ({which}.metadata.name.startsWith({literal(_PREFIX)}) && "
            f"{ref}.kind == 'ClusterRole' && {ref}.name == {literal(role)})",
            f"'administrators change bindings that are named {_PREFIX}USER, to the role {role}'",
        )
    subject = "object.subjects[0]"
    yield Rule(
        f"object == null || (has(object.subjects) && size(object.subjects) == 1 && {subject}.kind == 'ServiceAccount' "
        f"&& has({subject}.namespace) && {subject}.namespace == {literal(NAMESPACE)} && "
        f"{_NAME} == {literal(_PREFIX)} + {subject}.name && {_OWN} && "
        f"object.metadata.labels[{literal(OWNER)}] == {subject}.name && !has(object.metadata.ownerReferences) && "
        "!has(object.metadata.finalizers))",
        f"'the one subject of the binding is the user of its name and its label {OWNER}'",
    )
