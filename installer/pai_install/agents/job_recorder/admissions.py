"""Objects of schedulers -> since when a job waited for its devices, who took them, and the quotas. Pure.

What an object no longer says is unknown. An absent time is never taken for no time at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pai_install.agents.common.ledger import Quota
from pai_install.agents.common.values import Json, child, meta, rows, seconds, text
from pai_install.agents.job_recorder.holds import count, created_of, is_device, since

WORKLOADS, CLUSTER_QUEUES = "kueue.x-k8s.io/workloads", "kueue.x-k8s.io/clusterqueues"
_CLUSTER, _QUEUE, _PRIORITY = "pai-install/virtual-cluster", "kueue.x-k8s.io/queue-name", "pai-install/priority"
_PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
_HIVED_SCHEDULER, _VOLCANO_QUEUE = "hivedscheduler-ds-", "scheduling.volcano.sh/queue-name"
_MAX_PHASES, _MAX_TIME = 100, 1 << 33
# seconds that a controller needs to create the pods of an admitted job; later pods replace these
_CREATION_S = 120


@dataclass(frozen=True)
class Admission:
    """A job in a queue of Kueue. admitted: None while it waits. queued: None for an unknown time.

    preempted: when it lost its devices to others.
    """

    cluster: str = ""
    flavor: str = ""
    priority: str = ""
    queued: int | None = None
    admitted: int | None = None
    preempted: int | None = None


def owner_of_workload(workload: Json) -> tuple[str, str, str]:
    """Namespace, group, and name of the job that it queues."""
    owners = rows(child(workload, "metadata").get("ownerReferences"))
    owner = next((row for row in owners if row.get("controller")), {})
    return meta(workload, "namespace"), text(owner.get("apiVersion")).rpartition("/")[0], text(owner.get("name"))


def admission_of(workload: Json, before: Admission | None) -> Admission:
    """The state of a Workload. Kueue forgets the times of earlier states, so the state before counts, too."""
    spec, admission = child(workload, "spec"), child(workload, "status", "admission")
    earlier = before or Admission()
    flavors = [child(row, "flavors") for row in rows(admission.get("podSetAssignments"))]
    flavor = next((text(it[name]) for it in flavors for name in it if is_device(name)), "")
    priority = text(child(spec, "priorityClassRef").get("name")) or text(spec.get("priorityClassName"))
    admitted = since(workload, "Admitted", "True") or None
    return Admission(
        text(admission.get("clusterQueue")) or earlier.cluster,
        flavor or earlier.flavor,
        priority or earlier.priority,
        _queued(workload, before, admitted),
        admitted,
        since(workload, "Preempted", "True") or earlier.preempted,
    )


def _queued(workload: Json, before: Admission | None, admitted: int | None) -> int | None:
    first = "Evicted" not in {text(row.get("type")) for row in rows(child(workload, "status").get("conditions"))}
    created = created_of(workload) or None
    if admitted is None:
        return since(workload, "Evicted", "True") or (created if first else None)
    # Conditions of an admitted Workload no longer say when its wait began. The state before does.
    if before is not None and before.admitted in (None, admitted):
        return before.queued
    return created if first else None


def joins(created: int, start: int, admission: Admission) -> bool:
    """Whether a pod is one of those that the admission started, and replaces none of them."""
    admitted = admission.admitted
    return admitted is not None and start >= admitted and created - admitted <= _CREATION_S


@dataclass(frozen=True)
class QueuedJob:
    """A job. phases: of a Volcano Job, with their times."""

    uid: str
    cluster: str
    priority: str
    phases: tuple[tuple[str, int], ...] = ()


def job_in_queue(job: Json) -> QueuedJob:
    """What a job says of its queue. Admission policies hold the label of its virtual cluster to the queue."""
    labels, spec = child(job, "metadata", "labels"), child(job, "spec")
    policy = child(spec, "runPolicy", "schedulingPolicy")
    note = text(child(job, "metadata", "annotations").get(_PRIORITY))
    classes = (labels.get(_PRIORITY_CLASS), spec.get("priorityClassName"), policy.get("priorityClass"))
    queues = (labels.get(_QUEUE), spec.get("queue"), policy.get("queue"), labels.get(_CLUSTER))
    cluster, priority = (next(filter(None, map(text, words)), "") for words in (queues, (note, *classes)))
    return QueuedJob(meta(job, "uid"), cluster, priority, tuple(_phases(job)))


def cluster_of(pod: Json) -> str:
    """The virtual cluster that the scheduler reads from the pod itself, or ""."""
    scheduler = text(child(pod, "spec").get("schedulerName"))
    if scheduler.startswith(_HIVED_SCHEDULER):
        return scheduler[len(_HIVED_SCHEDULER) :]
    return text(child(pod, "metadata", "annotations").get(_VOLCANO_QUEUE))


def queued_by_volcano(phases: tuple[tuple[str, int], ...], created: int, start: int) -> int | None:
    """Since when Volcano queued the job for a pod, or None if its phases do not say it."""
    queued = max((at for phase, at in phases if phase == "Pending" and at <= created), default=0)
    runs = min((at for phase, at in phases if phase == "Running" and at >= queued), default=start)
    return queued if queued and start <= runs else None


def _phases(job: Json) -> Iterator[tuple[str, int]]:
    status = child(job, "status")
    for row in rows(status.get("conditions"))[-_MAX_PHASES:]:
        yield text(row.get("status")), int(seconds(text(row.get("lastTransitionTime"))))
    state = child(status, "state")
    yield text(state.get("phase")), int(seconds(text(state.get("lastTransitionTime"))))


def quota_of(queue: Json) -> Quota | None:
    """The devices that a ClusterQueue guarantees, or None for an unreadable one."""
    units: dict[str, int] = {}
    for group in rows(child(queue, "spec").get("resourceGroups")):
        for flavor in rows(group.get("flavors")):
            given = [
                count(row.get("nominalQuota")) for row in rows(flavor.get("resources")) if is_device(row.get("name"))
            ]
            if given:
                units[text(flavor.get("name"))] = sum(given)
    changes = [row for row in rows(child(queue, "metadata").get("managedFields")) if not row.get("subresource")]
    at = max((int(seconds(text(row.get("time")))) for row in changes), default=0) or created_of(queue)
    return (
        Quota(meta(queue, "name"), at, tuple(sorted(units.items())))
        if meta(queue, "name") and 0 < at <= _MAX_TIME
        else None
    )
