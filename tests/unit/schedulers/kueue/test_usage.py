"""What Kueue says jobs use."""

from __future__ import annotations

from pai_install.schedulers.kueue.usage import kueue_seen
from pai_install.scheduling.model import Share
from pai_install.scheduling.usage.model import UnfinishedJob, Use
from tests.unit.scheduling.usage.objects import cluster_queue, workload
from tests.virtual_clusters import GIBIBYTE, cluster, cores, gpus, share, site

SUPPLY, PLAIN = gpus("a100", 4), cores("cpu", 2)
SITE = site(
    SUPPLY,
    PLAIN,
    clusters=(
        cluster("research", share(SUPPLY, 8), pinned=("a100-4",)),
        cluster("product", share(SUPPLY, 8), Share("cpu", 10, GIBIBYTE, 0, 0)),
    ),
)


def test_use_by_flavor() -> None:
    queues = [
        cluster_queue(
            "research",
            a100={"nvidia.com/gpu": "12", "cpu": "90"},
            a100__of__research={"nvidia.com/gpu": "8"},
            gone={"nvidia.com/gpu": "2"},
        ),
        cluster_queue("product", a100={"nvidia.com/gpu": "0"}, cpu={"nvidia.com/gpu": "0", "cpu": "3500m"}),
        cluster_queue("a-queue-of-someone", a100={"nvidia.com/gpu": "8"}),
    ]
    found = {"clusterqueues.kueue.x-k8s.io": queues, "workloads.kueue.x-k8s.io": []}
    assert kueue_seen(SITE, found).uses == (
        Use("research", "a100", 20, own=8, borrowed=4),
        Use("product", "cpu", 4),
    )


def test_jobs_run_wait_and_end() -> None:
    workloads = [
        workload("research", "runs", 1, admitted=True),
        workload("research", "waits", 2, admitted=False),
        workload("research", "done", 1, admitted=True, finished=True),
        workload("research", "held", 1, admitted=False, active=False),
    ]
    found = {"clusterqueues.kueue.x-k8s.io": [], "workloads.kueue.x-k8s.io": workloads}
    assert kueue_seen(SITE, found).jobs == (
        UnfinishedJob("research", "vision/runs", waits=False, units={"nvidia.com/gpu": 8}),
        UnfinishedJob("research", "vision/waits", waits=True, units={"nvidia.com/gpu": 16}),
    )


def test_a_queue_that_is_not_there_yet_uses_nothing() -> None:
    found = {"clusterqueues.kueue.x-k8s.io": [{"metadata": {"name": "research"}}], "workloads.kueue.x-k8s.io": []}
    assert kueue_seen(SITE, found).uses == ()
