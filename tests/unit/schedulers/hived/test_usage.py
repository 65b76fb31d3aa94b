"""What jobs use with HiveD, from the annotations of its pods."""

from __future__ import annotations

from typing import Any

from pai_install.schedulers.hived.usage import hived_seen
from pai_install.scheduling.usage.model import UnfinishedJob, Use
from tests.unit.scheduling.usage.objects import pod
from tests.virtual_clusters import cluster, gpus, share, site

SUPPLY = gpus("a100", 2)
SITE = site(SUPPLY, clusters=(cluster("research", share(SUPPLY, 8)), cluster("lab", pinned=("a100-2",))))


def asking(name: str, node: str, said: str, cluster: str = "research") -> dict[str, Any]:
    note = {"hivedscheduler.microsoft.com/pod-scheduling-spec": f"virtualCluster: {cluster}\n{said}"}
    return pod(name, node, notes=note, scheduler=f"hivedscheduler-ds-{cluster}")


def test_pods_say_what_they_use() -> None:
    gang = "leafCellNumber: 2\naffinityGroup: {name: vision/gang}\n"
    pods = [
        asking("a", "a100-1", f"priority: 10\n{gang}"),
        asking("b", "", f"priority: 10\n{gang}"),
        asking("c", "a100-2", "priority: -1\nleafCellNumber: 3\n"),
        asking("d", "a100-2", "priority: 1\ngpuNumber: 4\n", "lab"),
        asking("e", "", "priority: 1\nleafCellNumber: 1\n", "lab"),
        asking("f", "a100-1", "{not yaml"),
        asking("g", "a100-1", "leafCellNumber: 8\n", "gone"),
        pod("h", "a100-1", asks={"nvidia.com/gpu": "8"}),
    ]
    seen = hived_seen(SITE, {"pods": pods})
    assert set(seen.uses) == {Use("research", "a100", 5, borrowed=3), Use("lab", "a100", 4, own=4)}
    assert seen.jobs[:2] == (
        UnfinishedJob("research", "vision/gang", waits=False, units={"devices": 4}, priority=10),
        UnfinishedJob("research", "vision/c", waits=False, units={"devices": 3}, priority=-1),
    )
    assert UnfinishedJob("lab", "vision/e", waits=True, units={"devices": 1}, priority=1) in seen.jobs
