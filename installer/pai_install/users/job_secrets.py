"""What Volcano's controllers may do with Secrets, ConfigMaps, and Services in the namespaces of groups. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pai_install.scheduling.admission import RequestKind, Rule, in_force, policy
from pai_install.scheduling.job_kinds import VOLCANO_JOB
from pai_install.site.services.virtual_clusters import SchedulerType
from pai_install.users.rights import RBAC

Object = dict[str, Any]

NAMESPACE, ACCOUNT = "pai-volcano", "volcano-controllers"
NAME = "pai-volcano-secrets"
_USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"


def job_secrets(scheduler: SchedulerType | None, namespaces: Iterable[str]) -> Iterator[Object]:
    """A role in each namespace for the plugin `ssh`, and policies that keep the controllers to objects of jobs."""
    if scheduler != "volcano":
        return
    spaces = tuple(namespaces)
    # Only in groups' namespaces: a ClusterRole would show the controllers all Secrets of the cluster.
    for space in spaces:
        metadata = {"name": NAME, "namespace": space}
        rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "create", "update", "delete"]}
        yield {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
        yield {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
        }
    for resource in ("secrets", "configmaps", "services"):
        yield from in_force(_of_jobs(resource), spaces)


def _of_jobs(resource: str) -> Object:
    """The name of a job decides the names of its objects, so a job could name those of others."""
    rule = Rule(
        f"{_owned('object')} && {_owned('oldObject')}",
        "'the controllers of Volcano change objects of jobs, and no others'",
    )
    kind = RequestKind("", "v1", resource, ("CREATE", "UPDATE", "DELETE"))
    only = {"the-controllers": f"request.userInfo.username == '{_USER}'"}
    return policy(f"pai-volcano-{resource}", kind, [rule], {}, only)


def _owned(which: str) -> str:
    owners = f"{which}.metadata.ownerReferences"
    job = f"o.kind == '{VOLCANO_JOB.name}' && o.apiVersion.startsWith('{VOLCANO_JOB.group}/')"
    return f"({which} == null || (has({owners}) && {owners}.exists(o, {job})))"
