"""What jobs use with Volcano: two SKUs of one resource stay two."""

from __future__ import annotations

from pai_install.schedulers.volcano.usage import volcano_seen
from pai_install.scheduling.usage.model import UnfinishedJob, Use
from tests.unit.scheduling.usage.objects import pod, pod_group
from tests.virtual_clusters import cluster, gpus, share, site

A100, V100 = gpus("a100", 2), gpus("v100", 2)
SITE = site(A100, V100, clusters=(cluster("research", share(A100, 4), share(V100, 8), pinned=("v100-2",)),))


def test_pods_are_counted_by_machine_and_group() -> None:
    notes = {"scheduling.k8s.io/group-name": "train-3c4d"}
    asks = {"nvidia.com/gpu": "8"}
    pods = [
        pod("a", "a100-1", notes=notes, asks=asks),
        pod("b", "v100-2", notes=notes, asks=asks),
        pod("c", "v100-1", "Succeeded", notes=notes, asks=asks),
        pod("d", "v100-1", asks=asks),
        pod("e", notes=notes, asks=asks),
        pod("f", "master", notes=notes, asks=asks),
    ]
    groups = [
        pod_group("train", "research", "Running"),
        pod_group("later", "research", "Pending", **{"requests.nvidia.com/gpu": "16", "cpu": "4"}),
        pod_group("cpu", "research", "Inqueue", cpu="1500m"),
        pod_group("done", "research", "Completed"),
    ]
    seen = volcano_seen(SITE, {"podgroups.scheduling.volcano.sh": groups, "pods": pods})
    assert seen.uses == (Use("research", "a100", 8, borrowed=4), Use("research", "v100", 8, own=8))
    assert seen.jobs == (
        UnfinishedJob("research", "vision/train", waits=False),
        UnfinishedJob("research", "vision/later", waits=True, units={"nvidia.com/gpu": 16}),
        UnfinishedJob("research", "vision/cpu", waits=True, units={"": 2}),
    )
