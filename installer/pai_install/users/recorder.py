"""The recorder of jobs to the cluster: its account, what it may do, and what keeps it to that. Pure.

Why there is one: docs/decisions/012-a-recorder-keeps-what-became-of-jobs.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pai_install.scheduling.policy import RequestKind, Rule, in_force, literal, policy
from pai_install.site.groups import RECORD_LABEL
from pai_install.site.services.virtual_clusters import SchedulerType
from pai_install.users.kinds import kinds_at
from pai_install.users.rights import RBAC

Object = dict[str, Any]

# what service accounts of this namespace read is in no audit log: it reads all the time
NAMESPACE, NAME = "kube-system", "pai-job-recorder"
_LABEL = literal(RECORD_LABEL)
_ME = {"the-recorder": f"request.userInfo.username == {literal(f'system:serviceaccount:{NAMESPACE}:{NAME}')}"}


def recorded_kinds(scheduler: SchedulerType | None) -> Sequence[str]:
    """GROUP/RESOURCE of the jobs that a site with this scheduler may have."""
    return tuple(sorted(f"{kind.group}/{kind.resource}" for kind in kinds_at(scheduler)))


def recorder_objects(scheduler: SchedulerType | None, namespaces: Iterable[str]) -> Iterator[Object]:
    """All of them. It sees jobs and pods of the whole cluster; logs and records are those of groups alone."""
    spaces = tuple(namespaces)
    yield {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "automountServiceAccountToken": False,
    }
    look = ("list", "watch")
    kinds = (kind.split("/") for kind in recorded_kinds(scheduler))
    yield _cluster_role(
        NAME,
        [_rule("", "pods", look), _rule("", "nodes", ("get",)), *(_rule(group, name, look) for group, name in kinds)],
    )
    yield _binding("ClusterRoleBinding", {"name": NAME}, "ClusterRole", NAME)
    records = _rule("", "configmaps", ("list", "create", "update", "delete"))
    # it lets go of pods that a lost machine keeps
    lost = (_rule("", "pods", ("delete",)), _rule("", "pods/status", ("patch",)))
    yield _cluster_role(f"{NAME}-records", [_rule("", "pods/log", ("get",)), records, *lost])
    for space in spaces:
        metadata = {"name": f"{NAME}-records", "namespace": space}
        yield _binding("RoleBinding", metadata, "ClusterRole", f"{NAME}-records")
    own = {"name": NAME, "namespace": NAMESPACE}
    lease = "coordination.k8s.io"
    rules = [
        _rule(lease, "leases", ("create",)),
        {**_rule(lease, "leases", ("get", "update")), "resourceNames": [NAME]},
    ]
    yield {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": own, "rules": rules}
    yield _binding("RoleBinding", own, "Role", NAME)
    yield from in_force(_records_alone(), spaces)
    for made in _lost_alone():
        yield from in_force(made, spaces)


def _records_alone() -> Object:
    """Of the ConfigMaps of a group it writes records, and none of what is the group's own."""
    rule = Rule(
        f"{_record('object')} && {_record('oldObject')}",
        f"'the recorder of jobs writes ConfigMaps with the label {RECORD_LABEL} alone'",
    )
    asked = RequestKind("", "v1", "configmaps", ("CREATE", "UPDATE", "DELETE"))
    return policy(NAME, asked, [rule], {}, _ME)


def _lost_alone() -> Iterator[Object]:
    """It ends no pod: it lets go of those that someone deleted, and that a lost machine keeps."""
    rule = Rule(
        "has(oldObject.metadata.deletionTimestamp)",
        "'the recorder of jobs lets go of pods that are being deleted, and deletes none'",
    )
    yield policy(f"{NAME}-pods", RequestKind("", "v1", "pods", ("DELETE",)), [rule], {}, _ME)
    failed = Rule("object.status.phase == 'Failed'", "'the recorder of jobs says of pods that they failed alone'")
    yield policy(f"{NAME}-pod-status", RequestKind("", "v1", "pods/status", ("UPDATE",)), [rule, failed], {}, _ME)


def _record(which: str) -> str:
    labels = f"{which}.metadata.labels"
    return f"({which} == null || (has({labels}) && {_LABEL} in {labels}))"


def _cluster_role(name: str, rules: Sequence[Object]) -> Object:
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": list(rules)}


def _rule(group: str, resource: str, verbs: Iterable[str]) -> Object:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}


def _binding(kind: str, metadata: Object, role_kind: str, role: str) -> Object:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": role_kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    }
