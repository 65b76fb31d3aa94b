"""Objects of a scheduler -> why a job waits, how it ended, how often it was tried. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pai_install.agents.common.records import Preemption
from pai_install.agents.common.retries import retries_of
from pai_install.jobs.pod_status import ENDED, POD_STATES, State, container_of, why_of
from pai_install.kube.objects import JsonObject, child, conditions, holding, number, rows, text
from pai_install.scheduling.job_kinds import JobKind

# what Kueue writes before the message of a condition that no longer holds
_PREVIOUSLY = "Previously: "
_MOST_TEXT = 400


@dataclass(frozen=True, slots=True)
class SchedulerStatus:
    """What the scheduler's own objects say. ended: empty while they do not."""

    ended: State | None
    why: str
    retries: int
    preemptions: tuple[Preemption, ...] = ()


def scheduler_status(job: JsonObject, kind: JobKind, statuses: Sequence[JsonObject]) -> SchedulerStatus:
    """The job's own status with that of its scheduler. statuses: the scheduler's objects of this job."""
    return _BY_GROUP[kind.group](job, statuses)


_ENDINGS = frozenset(("Failed", "Completed", "Complete", "Succeeded"))


def finished_at(job: JsonObject) -> str:
    """When a job ended by its own status, in Kubernetes' format, or ""."""
    status = child(job, "status")
    if found := text(status.get("completionTime")):
        return found
    ended = (
        row for row in rows(status.get("conditions")) if row.get("type") in _ENDINGS and row.get("status") == "True"
    )
    times = [text(row.get("lastTransitionTime")) for row in ended]
    return max(times, default="") or text(child(status, "state").get("lastTransitionTime"))


def _job_set(job: JsonObject, statuses: Sequence[JsonObject]) -> SchedulerStatus:
    status = child(job, "status")
    found = conditions(status.get("conditions"))
    retries = number(status.get("restarts")) or 0
    failed = holding(found, "Failed")
    if failed is not None:
        return SchedulerStatus("FAILED", failed.message or failed.reason, retries)
    if holding(found, "Completed") is not None:
        return SchedulerStatus("SUCCEEDED", "", retries)
    return SchedulerStatus(None, _kueue_reason(statuses), retries, _kueue_preemptions(statuses))


def _kueue_reason(workloads: Sequence[JsonObject]) -> str:
    """Why Kueue does not let it start, and why it stopped it, where it did."""
    workloads_of_kueue = [one for one in workloads if one.get("kind") == "Workload"]
    found = [one for workload in workloads_of_kueue for one in conditions(child(workload, "status").get("conditions"))]
    # Kueue keeps the messages of earlier conditions. With a quota, the job waits for nothing at Kueue.
    if holding(found, "QuotaReserved") is not None:
        return ""
    waits = next((one.message for one in found if one.type == "QuotaReserved"), "")
    stopped = holding(found, "Evicted")
    parts = (f"was stopped: {stopped.message}" if stopped else "", f"waits for quota: {waits}" if waits else "")
    return "; ".join(filter(None, parts))


def _kueue_preemptions(workloads: Sequence[JsonObject]) -> tuple[Preemption, ...]:
    """The last preemption. Kueue keeps its time until the job has devices again."""
    workloads_of_kueue = [one for one in workloads if one.get("kind") == "Workload"]
    found = [row for one in workloads_of_kueue for row in rows(child(one, "status").get("conditions"))]
    return tuple(
        Preemption(
            # Once the job has devices again, the time is that of its new start.
            text(row.get("lastTransitionTime")) if row.get("status") == "True" else "",
            text(row.get("message")).removeprefix(_PREVIOUSLY)[:_MOST_TEXT],
        )
        for row in found
        if row.get("type") == "Preempted" and text(row.get("message"))
    )


def _job(job: JsonObject, statuses: Sequence[JsonObject]) -> SchedulerStatus:
    """A batch Job, or one of Kubeflow's."""
    found = conditions(child(job, "status").get("conditions"))
    failed = holding(found, "Failed")
    if failed is not None:
        return SchedulerStatus("FAILED", failed.message or failed.reason, 0)
    if holding(found, "Complete") is not None or holding(found, "Succeeded") is not None:
        return SchedulerStatus("SUCCEEDED", "", 0)
    return SchedulerStatus(None, _kueue_reason(statuses) or _volcano_reason(statuses), 0, _kueue_preemptions(statuses))


def _pod(job: JsonObject, statuses: Sequence[JsonObject]) -> SchedulerStatus:
    status = child(job, "status")
    state = POD_STATES.get(text(status.get("phase")))
    if state not in ENDED:
        return SchedulerStatus(None, _volcano_reason(statuses), 0)
    return SchedulerStatus(state, why_of(status, child(container_of(job), "state")) if state == "FAILED" else "", 0)


def _volcano(job: JsonObject, statuses: Sequence[JsonObject]) -> SchedulerStatus:
    status = child(job, "status")
    state = child(status, "state")
    phase, message = text(state.get("phase")), text(state.get("message"))
    retries = number(status.get("retryCount")) or 0
    if phase in {"Completed", "Failed", "Aborted", "Terminated"}:
        good = phase == "Completed"
        spent = "failed more often than its retries permit" if phase == "Terminated" and retries_of(job) else ""
        return SchedulerStatus("SUCCEEDED" if good else "FAILED", "" if good else spent or message or phase, retries)
    return SchedulerStatus(None, _volcano_reason(statuses) if phase in {"", "Pending"} else "", retries)


def _volcano_reason(groups: Sequence[JsonObject]) -> str:
    """Why Volcano has no room for it; a group that runs had room."""
    states = [child(group, "status") for group in groups if group.get("kind") == "PodGroup"]
    waiting = [it for it in states if text(it.get("phase")) not in {"Running", "Completed"}]
    waits = holding([one for it in waiting for one in conditions(it.get("conditions"))], "Unschedulable")
    return f"waits for room: {waits.message}" if waits else ""


# by the group of the kind
_BY_GROUP: Mapping[str, Callable[[JsonObject, Sequence[JsonObject]], SchedulerStatus]] = {
    "": _pod,
    "batch": _job,
    "jobset.x-k8s.io": _job_set,
    "batch.volcano.sh": _volcano,
    "kubeflow.org": _job,
}
