"""The right of Volcano's controllers to the Secrets of the plugin `ssh`, in the namespaces of groups. Pure."""

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
    """A role in each namespace, and the policy that keeps the controllers to Secrets of jobs."""
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
    yield from in_force(_of_jobs(), spaces)


def _of_jobs() -> Object:
    """The name of a job decides the name of its Secret, so a job could name the Secret of another."""
    rule = Rule(
        f"{_owned('object')} && {_owned('oldObject')}",
        "'the controllers of Volcano change Secrets of jobs, and no others'",
    )
    kind = RequestKind("", "v1", "secrets", ("CREATE", "UPDATE", "DELETE"))
    return policy(NAME, kind, [rule], {}, {"the-controllers": f"request.userInfo.username == '{_USER}'"})


def _owned(which: str) -> str:
    owners = f"{which}.metadata.ownerReferences"
    job = f"o.kind == '{VOLCANO_JOB.name}' && o.apiVersion.startsWith('{VOLCANO_JOB.group}/')"
    return f"({which} == null || (has({owners}) && {owners}.exists(o, {job})))"
