"""Account, rights, and policies of the recorder of jobs. Pure.

Reasons for a recorder: docs/decisions/012-job-history-by-a-recorder.md. Its actions on jobs with idle GPUs:
docs/decisions/014-gpu-utilization-as-a-pod-condition.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from pai_install.scheduling.admission import RequestKind, Rule, in_force, literal, policy
from pai_install.scheduling.job_kinds import POD
from pai_install.site.groups import RECORD_LABEL, STOPPED_BY
from pai_install.site.services.use_limits import Then
from pai_install.site.services.virtual_clusters import SchedulerType
from pai_install.users.kinds import kinds_at, requests
from pai_install.users.rights import RBAC

Object = dict[str, Any]

# what service accounts of this namespace read is in no audit log: it reads all the time
NAMESPACE, NAME = "kube-system", "pai-job-recorder"
# whom a job that it stops is said to be stopped by
MYSELF = "pai-install"
_KUEUE, _BUS = "kueue.x-k8s.io", "bus.volcano.sh"
# of a workload's spec, but for its priority, and what is there where nothing is said
_WORKLOAD_FIELDS = {"podSets": "[]", "queueName": "''", "active": "true"}
_LABEL = literal(RECORD_LABEL)
_ME = {"the-recorder": f"request.userInfo.username == {literal(f'system:serviceaccount:{NAMESPACE}:{NAME}')}"}


def recorded_kinds(scheduler: SchedulerType | None) -> Sequence[str]:
    """GROUP/RESOURCE of the jobs that a site with this scheduler may have."""
    return tuple(sorted(f"{kind.group}/{kind.resource}" for kind in kinds_at(scheduler)))


def recorder_objects(
    scheduler: SchedulerType | None, namespaces: Iterable[str], acts: Collection[Then] = ()
) -> Iterator[Object]:
    """Yields all objects. The recorder sees jobs and pods of the whole cluster, but logs and records of groups only.

    acts: actions of the site on jobs with idle GPUs. Without actions it changes no job.
    """
    spaces = tuple(namespaces)
    yield {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        # The recorder is no pod. Its token comes from systemd.
        "automountServiceAccountToken": False,
    }
    look = ("list", "watch")
    kinds = [kind.split("/") for kind in recorded_kinds(scheduler)]
    if scheduler == "kueue":
        kinds += [[_KUEUE, "clusterqueues"], [_KUEUE, "workloads"]]
    yield _cluster_role(
        NAME,
        [_rule("", "pods", look), _rule("", "nodes", ("get",)), *(_rule(group, name, look) for group, name in kinds)],
    )
    # One watch for the whole cluster costs less than one for each namespace.
    yield _binding("ClusterRoleBinding", {"name": NAME}, "ClusterRole", NAME)
    records = _rule("", "configmaps", ("list", "create", "update", "delete"))
    # it lets go of pods that a lost machine keeps
    lost = (_rule("", "pods", ("delete",)), _rule("", "pods/status", ("patch",)))
    ends = (_rule(_BUS, "commands", ("create",)),) if scheduler == "volcano" else ()
    yield _cluster_role(f"{NAME}-records", [_rule("", "pods/log", ("get",)), records, *lost, *ends])
    for space in spaces:
        metadata = {"name": f"{NAME}-records", "namespace": space}
        yield _binding("RoleBinding", metadata, "ClusterRole", f"{NAME}-records")
    own = {"name": NAME, "namespace": NAMESPACE}
    lease = "coordination.k8s.io"
    rules = [
        _rule(lease, "leases", ("create",)),
        # RBAC cannot limit create by a name, since the name is not known then. All else it can.
        {**_rule(lease, "leases", ("get", "update")), "resourceNames": [NAME]},
    ]
    yield {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": own, "rules": rules}
    yield _binding("RoleBinding", own, "Role", NAME)
    yield from in_force(_records_alone(), spaces)
    yield from in_force(_no_forged_records(), spaces)
    if ends:
        yield from in_force(_ends_alone(), spaces)
    for made in _lost_alone(stops="stop" in acts):
        yield from in_force(made, spaces)
    if acts:
        yield from _acting(scheduler, spaces, acts)


def _acting(scheduler: SchedulerType | None, spaces: Sequence[str], acts: Collection[Then]) -> Iterator[Object]:
    """Yields the rights to act on jobs of groups, and policies that restrict these."""
    verbs = ("patch", *(("delete",) if "stop" in acts else ()))
    kinds = (*kinds_at(scheduler), POD)
    rules = [_rule(kind.group, kind.resource, verbs) for kind in kinds]
    if "preemptible" in acts:
        rules.append(_rule(_KUEUE, "workloads", ("list", "patch")))
    yield _cluster_role(f"{NAME}-acts", rules)
    for space in spaces:
        yield _binding("RoleBinding", {"name": f"{NAME}-acts", "namespace": space}, "ClusterRole", f"{NAME}-acts")
    # A right to patch jobs includes their spec. The policy leaves annotations alone of it.
    noted = Rule(
        "object.spec == oldObject.spec && (has(object.metadata.labels) ? object.metadata.labels : {}) == "
        "(has(oldObject.metadata.labels) ? oldObject.metadata.labels : {})",
        "'the recorder of jobs writes annotations of jobs, and nothing else of them'",
    )
    ended = Rule(_stopped_by_me("oldObject"), "'the recorder of jobs deletes no job that does not say so'")
    for kind in kinds:
        request_kind = kind.resource + (f".{kind.group}" if kind.group else "")
        yield from in_force(policy(f"{NAME}-notes-{request_kind}", requests(kind, "UPDATE"), [noted], {}, _ME), spaces)
        if kind is not POD:
            yield from in_force(
                policy(f"{NAME}-ends-{request_kind}", requests(kind, "DELETE"), [ended], {}, _ME), spaces
            )
    if "preemptible" in acts:
        yield from in_force(_priorities_alone(), spaces)


def _priorities_alone() -> Object:
    """Returns the policy that the recorder only lowers the priority of Kueue's workloads."""
    same = " && ".join(f"{_field('object', name)} == {_field('oldObject', name)}" for name in _WORKLOAD_FIELDS)
    rule = Rule(
        f"{same} && {_field('object', 'priority')} <= {_field('oldObject', 'priority')}",
        "'the recorder of jobs lowers the priority of workloads, and changes nothing else of them'",
    )
    return policy(f"{NAME}-workloads", RequestKind(_KUEUE, "*", "workloads", ("UPDATE",)), [rule], {}, _ME)


def _field(which: str, name: str) -> str:
    return f"{which}.spec.?{name}.orValue({_WORKLOAD_FIELDS.get(name, '0')})"


def _stopped_by_me(which: str) -> str:
    notes = f"{which}.metadata.annotations"
    return f"(has({notes}) && {notes}[?{literal(STOPPED_BY)}].orValue('') == {literal(MYSELF)})"


def _records_alone() -> Object:
    """Returns the policy that the recorder writes only records among the ConfigMaps of a group."""
    rule = Rule(
        f"{_record('object')} && {_record('oldObject')}",
        f"'the recorder of jobs writes ConfigMaps with the label {RECORD_LABEL} alone'",
    )
    request_kind = RequestKind("", "v1", "configmaps", ("CREATE", "UPDATE", "DELETE"))
    return policy(NAME, request_kind, [rule], {}, _ME)


def _no_forged_records() -> Object:
    """Only the recorder writes records. Administrators do not: a job file that they submit may come from a user."""
    rule = Rule(
        f"!{_has_label('object')} && !{_has_label('oldObject')}",
        f"'only the job recorder writes ConfigMaps with the label {RECORD_LABEL}'",
    )
    others = {"not-the-recorder": f"!({_ME['the-recorder']})"}
    changes = RequestKind("", "v1", "configmaps", ("CREATE", "UPDATE"))
    return policy(f"{NAME}-records", changes, [rule], {}, others, exempt_admins=False)


def _ends_alone() -> Object:
    """Returns the policy that the recorder ends jobs of Volcano, and does nothing else to them by a command."""
    rule = Rule("object.action == 'TerminateJob'", "'the recorder of jobs ends jobs by commands, and that alone'")
    return policy(f"{NAME}-commands", RequestKind(_BUS, "*", "commands", ("CREATE",)), [rule], {}, _ME)


def _lost_alone(*, stops: bool) -> Iterator[Object]:
    """Yields the policies that the recorder removes only pods with a pending deletion, and marks them failed.

    stops: whether the recorder also stops pods that are jobs themselves.
    """
    deleted = "has(oldObject.metadata.deletionTimestamp)"
    rule = Rule(
        deleted,
        "'the recorder of jobs lets go of pods that are being deleted, and deletes none'",
    )
    ends = Rule(
        f"{deleted} || {_stopped_by_me('oldObject')}",
        "'the recorder of jobs lets go of pods that are being deleted, and deletes no other that does not say so'",
    )
    yield policy(f"{NAME}-pods", RequestKind("", "v1", "pods", ("DELETE",)), [ends if stops else rule], {}, _ME)
    failed = Rule("object.status.phase == 'Failed'", "'the recorder of jobs says of pods that they failed alone'")
    yield policy(f"{NAME}-pod-status", RequestKind("", "v1", "pods/status", ("UPDATE",)), [rule, failed], {}, _ME)


def _record(which: str) -> str:
    return f"({which} == null || {_has_label(which)})"


def _has_label(which: str) -> str:
    labels = f"{which}.metadata.labels"
    return f"({which} != null && has({labels}) && {_LABEL} in {labels})"


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
