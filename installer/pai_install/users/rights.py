"""Rights of members of groups and administrators, as roles of Kubernetes. Pure.

The roles alone give no access: a binding in a group's namespace makes a user its member (objects.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pai_install.site.services.virtual_clusters import SchedulerType
from pai_install.users.kinds import LOOKED_AT, LookedAt, kinds_at
from pai_install.users.model import ADMIN, MEMBER, NAMESPACE, SUBMITTERS

Object = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"
# who may do this to jobs is an administrator to our policies; no object of the cluster is of this kind
ADMINISTRATE = ("pai-install", "jobs", "administrate")

_LOOK = ("get", "list", "watch")
_CHANGE = (*_LOOK, "create", "patch", "delete")


def roles(scheduler: SchedulerType | None) -> Iterator[Object]:
    """Yields the namespace of users' accounts and the two roles. Their rights cover jobs of the site's scheduler."""
    yield {
        "apiVersion": "v1",
        "kind": "Namespace",
        # A deleted namespace would take all accounts along, also if the site only lost its groups for a moment.
        "metadata": {"name": NAMESPACE, "annotations": {"pai-install/removal": "release"}},
    }
    yield _role(MEMBER, member_rules(scheduler))
    yield _role(ADMIN, administrator_rules(scheduler))


def submitter_bindings(namespaces: Iterable[str]) -> Iterator[Object]:
    """The rights of members for `job submit`, which asks the API server in the name of any user."""
    for namespace in namespaces:
        yield {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "pai-submitters", "namespace": namespace},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": MEMBER},
            "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": SUBMITTERS}],
        }


def member_rules(scheduler: SchedulerType | None) -> Iterator[Object]:
    """Yields the rules of members. They have no exec, because no policy sees its pod. They read no Secrets."""
    yield rule_on("", ("pods",), (*_LOOK, "create", "delete"))
    yield rule_on("", ("pods/log",), ("get",))
    yield rule_on("", ("configmaps",), (*_LOOK, "create", "update", "patch", "delete"))
    # No get and no update: Secrets of colleagues and keys of storages are in the same namespace.
    yield rule_on("", ("secrets",), ("create", "delete"))
    for kind in kinds_at(scheduler):
        yield rule_on(kind.group, (kind.resource,), (*_LOOK, "create", "update", "patch", "delete"))
    yield from _readable(scheduler, (reading for reading in LOOKED_AT if not reading.everywhere))


def administrator_rules(scheduler: SchedulerType | None) -> Iterator[Object]:
    """Yields the rules of administrators: they see and stop all jobs. With pods in any namespace they would be root.

    They make and remove users. administration.py limits these accounts and bindings.
    """
    yield rule_on("", ("pods",), (*_LOOK, "delete"))
    yield rule_on("", ("pods/log",), ("get",))
    for kind in kinds_at(scheduler):
        yield rule_on(kind.group, (kind.resource,), (*_LOOK, "delete"))
    yield from _readable(scheduler, LOOKED_AT)
    group, resource, verb = ADMINISTRATE
    yield rule_on(group, (resource,), (verb,))
    yield rule_on("", ("serviceaccounts",), _CHANGE)
    yield rule_on(RBAC, ("rolebindings", "clusterrolebindings"), _CHANGE)
    # RBAC refuses a binding to a role with more rights than its writer has, unless the writer may bind it.
    yield {**rule_on(RBAC, ("clusterroles",), ("bind",)), "resourceNames": [MEMBER, ADMIN]}


def _readable(scheduler: SchedulerType | None, readings: Iterable[LookedAt]) -> Iterator[Object]:
    for reading in readings:
        if reading.scheduler in (None, scheduler):
            yield rule_on(reading.group, reading.resources, _LOOK)


def rule_on(group: str, resources: Iterable[str], verbs: Iterable[str]) -> Object:
    """A rule of a role on resources of one group."""
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _role(name: str, rules: Iterable[Object]) -> Object:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": list(rules),
    }
