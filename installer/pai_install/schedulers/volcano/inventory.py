"""Jobs that Volcano keeps: its own Jobs, and PodGroups of other controllers. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.kube.objects import child, text
from pai_install.schedulers.job_inventory import Answers, BlockingJob, State, kept_job, owner_job, owners_of

_VOLCANO_JOBS, POD_GROUPS = "jobs.batch.volcano.sh", "podgroups.scheduling.volcano.sh"
KINDS = (_VOLCANO_JOBS, POD_GROUPS)
_VOLCANO_GROUP = "batch.volcano.sh/"
_ENDED_PHASES = ("Completed", "Failed", "Aborted", "Terminated")
_WAITING_PHASES = ("", "Pending", "Inqueue")


def volcano_kept_jobs(found: Answers) -> Iterator[BlockingJob]:
    """Volcano's Jobs, and groups of pods that another controller made."""
    for job in found[_VOLCANO_JOBS]:
        phase = text(child(job, "status", "state").get("phase"))
        state: State = "has ended" if phase in _ENDED_PHASES else _placed(phase)
        yield kept_job(job, state, text(child(job, "spec").get("queue")))
    for group in found[POD_GROUPS]:
        if any(text(row.get("apiVersion")).startswith(_VOLCANO_GROUP) for row in owners_of(group)):
            continue
        phase, queue = text(child(group, "status").get("phase")), text(child(group, "spec").get("queue"))
        yield kept_job(group, "has ended", queue) if phase == "Completed" else owner_job(group, _placed(phase), queue)


def _placed(phase: str) -> State:
    return "waits" if phase in _WAITING_PHASES else "runs"
