"""Jobs that Kueue keeps: its Workloads, and JobSets. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.kube.objects import child, conditions, state_of, text
from pai_install.schedulers.job_inventory import JOBSETS, Answers, BlockingJob, State, jobsets, kept_job, owner_job

WORKLOADS = "workloads.kueue.x-k8s.io"
KINDS = (WORKLOADS, JOBSETS)


def kueue_kept_jobs(found: Answers) -> Iterator[BlockingJob]:
    """A Workload stands for its job. A JobSet without one is a job, too: its kind goes with the scheduler."""
    for workload in found[WORKLOADS]:
        status = child(workload, "status")
        states = conditions(status.get("conditions"))
        cluster = text(child(status, "admission").get("clusterQueue")) or text(child(workload, "spec").get("queueName"))
        if state_of(states, "Finished") is True:
            yield kept_job(workload, "has ended", cluster)
        else:
            state: State = "runs" if state_of(states, "QuotaReserved") is True else "waits"
            yield owner_job(workload, state, cluster)
    yield from jobsets(found)
