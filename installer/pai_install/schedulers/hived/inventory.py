"""Jobs that HiveD keeps: JobSets, and pods of its schedulers. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.kube.objects import child, text
from pai_install.schedulers.job_inventory import JOBSETS, Answers, BlockingJob, jobsets, owner_job, pods_beside_jobsets
from pai_install.scheduling.job_queue import HIVED_SCHEDULER
from pai_install.scheduling.usage.pods import node_of

KINDS = ("pods", JOBSETS)


def hived_kept_jobs(found: Answers) -> Iterator[BlockingJob]:
    """Pods, but for those of a JobSet, which stands for them: its kind may go with the scheduler."""
    yield from jobsets(found)
    for pod in pods_beside_jobsets(found):
        scheduler = text(child(pod, "spec").get("schedulerName"))
        if scheduler.startswith(HIVED_SCHEDULER):
            yield owner_job(pod, "runs" if node_of(pod) else "waits", scheduler.removeprefix(HIVED_SCHEDULER))
