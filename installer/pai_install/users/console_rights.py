"""Account and rights of the console. Pure.

It acts in the name of users, and only in that of accounts of the namespace of users. Kubernetes 1.36 also limits what
it may do in these names (constrained impersonation). In its own name it reads lists, and keeps its Secrets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pai_install.site.groups import TEMPLATES_NAMESPACE as TEMPLATES
from pai_install.site.services.virtual_clusters import SchedulerType
from pai_install.users.kinds import LOOKED_AT, kinds_at
from pai_install.users.model import NAMESPACE as USERS
from pai_install.users.rights import RBAC, administrator_rules, member_rules, rule_on

Object = dict[str, Any]

NAMESPACE = NAME = "pai-console"
# ConfigMaps with the profile of the site and its last runs, and their namespace
PROFILE = ("pai-install-profile", "pai-install-virtual-clusters", "pai-install-runs")
PROFILE_IN = "kube-system"
# the first version with verbs for what is done in another's name
_CONSTRAINED = (1, 36)
_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
_ON = "impersonate-on:serviceaccount:"
_LOOK = ("get", "list", "watch")
# without a namespace: the name of the sender, and its rights
_REVIEWS = (
    (_AUTHENTICATION, ("selfsubjectreviews",)),
    (_AUTHORIZATION, ("selfsubjectaccessreviews", "selfsubjectrulesreviews")),
)


def console_objects(
    scheduler: SchedulerType | None, namespaces: Iterable[str], kubernetes_version: str
) -> Iterator[Object]:
    """Yields namespace, account, roles and bindings.

    namespaces: of groups. kubernetes_version: such as 1.36.3.
    """
    spaces = tuple(dict.fromkeys(namespaces))
    # its pods are in the network of their node
    labels = {"pod-security.kubernetes.io/enforce": "privileged"}
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
    yield {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "automountServiceAccountToken": False,
    }
    yield from _granted("Role", NAME, [rule_on("", ("secrets",), (*_LOOK, "create", "patch", "delete"))], (NAMESPACE,))
    yield from _granted("ClusterRole", f"{NAME}-lists", _lists(scheduler), ())
    profile = {**rule_on("", ("configmaps",), ("get",)), "resourceNames": list(PROFILE)}
    yield from _granted("Role", f"{NAME}-profile", [profile], (PROFILE_IN,))
    yield from _granted("ClusterRole", f"{NAME}-records", [rule_on("", ("configmaps",), _LOOK)], spaces)
    # An older API server ignores the verbs of constrained impersonation, and would refuse every request.
    if constrained(kubernetes_version):
        whom = rule_on(_AUTHENTICATION, ("serviceaccounts",), ("impersonate:serviceaccount",))
        yield from _granted("Role", f"{NAME}-users", [whom], (USERS,))
        yield from _granted("ClusterRole", f"{NAME}-as-users", _in_groups(scheduler), (*spaces, USERS, TEMPLATES))
        yield from _granted("ClusterRole", f"{NAME}-as-users-everywhere", _everywhere(scheduler), ())
    else:
        # The role is in the namespace of users, so no other account can be impersonated.
        whom = rule_on("", ("serviceaccounts",), ("impersonate",))
        yield from _granted("Role", f"{NAME}-users", [whom], (USERS,))


def constrained(kubernetes_version: str) -> bool:
    """Whether this version limits what is done in the name of another."""
    major, minor, *_ = (int(number) for number in f"{kubernetes_version}.0".split(".")[:2])
    return (major, minor) >= _CONSTRAINED


def _lists(scheduler: SchedulerType | None) -> Iterator[Object]:
    """Yields the rules of the lists that it keeps: no Secrets, and no logs."""
    yield rule_on("", ("pods", "serviceaccounts"), _LOOK)
    yield rule_on(RBAC, ("rolebindings", "clusterrolebindings"), _LOOK)
    for kind in kinds_at(scheduler):
        yield rule_on(kind.group, (kind.resource,), _LOOK)
    for reading in LOOKED_AT:
        if reading.scheduler in (None, scheduler):
            yield rule_on(reading.group, reading.resources, _LOOK)


def _in_groups(scheduler: SchedulerType | None) -> Iterator[Object]:
    """Yields what it does in the names of users: what their roles allow, in namespaces."""
    for rule in (*member_rules(scheduler), *_of_namespaces(administrator_rules(scheduler))):
        yield _in_their_name(rule)


def _of_namespaces(rules: Iterable[Object]) -> Iterator[Object]:
    """Without `bind` and other verbs that no request has."""
    usual = {*_LOOK, "create", "update", "patch", "delete"}
    for rule in rules:
        verbs = [verb for verb in rule["verbs"] if verb in usual]
        if verbs:
            yield {**rule, "verbs": verbs}


def _everywhere(scheduler: SchedulerType | None) -> Iterator[Object]:
    """Yields what it does in the names of administrators outside namespaces: they look, and name administrators."""
    for group, resources in _REVIEWS:
        yield _in_their_name(rule_on(group, resources, ("create",)))
    for rule in _of_namespaces(administrator_rules(scheduler)):
        looks = [verb for verb in rule["verbs"] if verb in _LOOK]
        if looks:
            yield _in_their_name({**rule, "verbs": looks})
    yield _in_their_name(rule_on(RBAC, ("clusterrolebindings",), ("create", "patch", "delete")))


def _in_their_name(rule: Object) -> Object:
    return {**rule, "verbs": [f"{_ON}{verb}" for verb in rule["verbs"]]}


def _granted(kind: str, name: str, rules: Iterable[Object], spaces: Sequence[str]) -> Iterator[Object]:
    """A role and its bindings. spaces: namespaces, none for the whole cluster."""
    metadata = {"name": name, **({"namespace": spaces[0]} if kind == "Role" else {})}
    yield {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, "rules": list(rules)}
    for space in spaces or ("",):
        yield {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding" if space else "ClusterRoleBinding",
            "metadata": {"name": name, **({"namespace": space} if space else {})},
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
        }
