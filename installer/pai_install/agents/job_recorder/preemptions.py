"""Preemptions of jobs: pods that lost their devices, and the jobs that have these devices now. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from pai_install.agents.common.records import Preemption
from pai_install.agents.common.values import Json, child, meta, rows, seconds, text
from pai_install.agents.job_recorder.objects import MAX_TEXT

# pods of one gang lose their devices within this time
_TOGETHER_S = 60
# preemptions of one job
_MOST = 20
_SCHEDULER = "PreemptionByScheduler"
# Kueue names the job that gets the devices by its UID
_BY_JOB = re.compile(r"\bJobUID: ([-0-9a-f]{1,64})\b")


@dataclass(frozen=True)
class Disruption:
    """A pod that lost its devices. machine: empty where no scheduler took them for another pod. created: of the pod."""

    preemption: Preemption
    machine: str
    created: str = ""


def disruption_of(pod: Json) -> Disruption | None:
    """Returns the reason why a pod loses its devices, or None."""
    found = _condition(pod, "DisruptionTarget")
    if found is None:
        return None
    why = text(found.get("message")) or text(found.get("reason"))
    preemption = Preemption(text(found.get("lastTransitionTime"))[:MAX_TEXT], why[:MAX_TEXT])
    machine = text(child(pod, "spec").get("nodeName")) if found.get("reason") == _SCHEDULER else ""
    return Disruption(preemption, machine, meta(pod, "creationTimestamp"))


def with_disruption(before: tuple[Preemption, ...], new: Disruption) -> tuple[Preemption, ...]:
    """The preemptions of a job, the latest last. The pods of a gang make one, and a pod that came later another."""
    found = new.preemption
    if any(
        one.why == found.why and new.created <= one.at and abs(seconds(one.at) - seconds(found.at)) <= _TOGETHER_S
        for one in before
    ):
        return before
    return (*before, found)[-_MOST:]


def kueue_preemption(workload: Json) -> tuple[Preemption, str] | None:
    """The preemption of a job that Kueue queues, and the UID of the job that gets its devices. None: it has them."""
    found = _condition(workload, "Preempted")
    if found is None:
        return None
    why = text(found.get("message")) or text(found.get("reason"))
    named = _BY_JOB.search(why)
    at = text(found.get("lastTransitionTime"))[:MAX_TEXT]
    return Preemption(at, why[:MAX_TEXT]), named[1] if named else ""


def with_kueue_preemption(before: tuple[Preemption, ...], new: Preemption) -> tuple[Preemption, ...]:
    """The preemptions of a job, the latest last. Kueue repeats one until the job has devices again."""
    known = [one for one in before if one.at != new.at]
    kept = next((one for one in before if one.at == new.at and one.by), new)
    return (*known, kept)[-_MOST:]


def taken_by(before: tuple[Preemption, ...], job: str, pod: Json) -> tuple[Preemption, ...]:
    """The preemptions of a job, after a pod of another job started on a machine that the first one lost."""
    scheduled = _condition(pod, "PodScheduled")
    if not before or before[-1].by or scheduled is None:
        return before
    # Timestamps of Kubernetes have one form and one zone, so they compare as texts.
    if text(scheduled.get("lastTransitionTime")) < before[-1].at:
        return before
    return (*before[:-1], replace(before[-1], by=f"{meta(pod, 'namespace')}/{job}"[:MAX_TEXT]))


def _condition(pod: Json, kind: str) -> Json | None:
    found = rows(child(pod, "status").get("conditions"))
    return next((row for row in found if row.get("type") == kind and row.get("status") == "True"), None)
