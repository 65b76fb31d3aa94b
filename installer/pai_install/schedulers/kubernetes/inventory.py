"""Jobs of sites without a batch scheduler: JobSets, and pods with devices. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pai_install.kube.objects import child
from pai_install.schedulers.job_inventory import JOBSETS, Answers, BlockingJob, jobsets, owner_job, pods_beside_jobsets
from pai_install.scheduling.usage.amounts import requests_of_pod
from pai_install.scheduling.usage.pods import node_of

KINDS = ("pods", JOBSETS)


def kubernetes_kept_jobs(found: Answers, devices: Collection[str]) -> Iterator[BlockingJob]:
    """JobSets, and pods that ask for devices: no other scheduler would know of them."""
    yield from jobsets(found)
    for pod in pods_beside_jobsets(found):
        requested = requests_of_pod(child(pod, "spec"))
        if any(requested.get(name) for name in devices):
            yield owner_job(pod, "runs" if node_of(pod) else "waits")
