"""Preemptions of jobs: pods that lost their devices, and the jobs that have these devices now. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pai_install.agents.common.records import Preemption
from pai_install.agents.common.values import Json, child, meta, rows, seconds, text
from pai_install.agents.job_recorder.objects import MAX_TEXT

# pods of one gang lose their devices within this time
_TOGETHER_S = 60
# preemptions of one job
_MOST = 20
_SCHEDULER = "PreemptionByScheduler"


@dataclass(frozen=True)
class Disruption:
    """A pod that lost its devices. machine: empty where no scheduler took them for another pod."""

    preemption: Preemption
    machine: str


def disruption_of(pod: Json) -> Disruption | None:
    """Returns the reason why a pod loses its devices, or None."""
    found = _condition(pod, "DisruptionTarget")
    if found is None:
        return None
    why = text(found.get("message")) or text(found.get("reason"))
    preemption = Preemption(text(found.get("lastTransitionTime"))[:MAX_TEXT], why[:MAX_TEXT])
    machine = text(child(pod, "spec").get("nodeName")) if found.get("reason") == _SCHEDULER else ""
    return Disruption(preemption, machine)


def with_preemption(before: tuple[Preemption, ...], new: Preemption) -> tuple[Preemption, ...]:
    """The preemptions of a job, the latest last. The pods of a gang make one."""
    if any(one.why == new.why and abs(seconds(one.at) - seconds(new.at)) <= _TOGETHER_S for one in before):
        return before
    return (*before, new)[-_MOST:]


def taken_by(before: tuple[Preemption, ...], job: str, pod: Json) -> tuple[Preemption, ...]:
    """The preemptions of a job, after a pod of another job started on a machine that the first one lost."""
    scheduled = _condition(pod, "PodScheduled")
    if not before or before[-1].by or scheduled is None:
        return before
    if text(scheduled.get("lastTransitionTime")) < before[-1].at:
        return before
    return (*before[:-1], replace(before[-1], by=f"{meta(pod, 'namespace')}/{job}"[:MAX_TEXT]))


def _condition(pod: Json, kind: str) -> Json | None:
    found = rows(child(pod, "status").get("conditions"))
    return next((row for row in found if row.get("type") == kind and row.get("status") == "True"), None)
