"""What is read of the cluster."""

from __future__ import annotations

from typing import Any

from pai_install.schedulers.simulate.manifest import CELLS
from pai_install.schedulers.simulate.model import ClusterNow
from pai_install.schedulers.simulate.snapshot import snapshot_kinds, snapshot_of
from pai_install.scheduling.model import Backend
from tests.unit.scheduling.usage.objects import pod, pod_group, workload
from tests.virtual_clusters import cluster, gpus, share, site, with_backend

GPU = "nvidia.com/gpu"
SUPPLY = gpus("a100", 3)
SITE = site(SUPPLY, clusters=(cluster("research", share(SUPPLY, 16), groups=("vision",)),))


def node(name: str, *, ready: bool = True, **spec: Any) -> dict[str, Any]:
    """With 8 devices and 90 processors."""
    return {
        "metadata": {"name": name, "labels": {"zone": "z"}},
        "spec": spec,
        "status": {
            "allocatable": {GPU: "8", "cpu": "90"},
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


NODES = (node("a100-1", taints=[{"key": "k", "effect": "NoSchedule"}]), node("a100-2", unschedulable=True))


def read(backend: Backend, pods: list[dict[str, Any]], *more: list[dict[str, Any]]) -> ClusterNow:
    """Of the site above."""
    return snapshot_of(with_backend(SITE, backend), (NODES, pods, *more))


def test_machines_and_what_is_free() -> None:
    found = read("kueue", [pod("x", "a100-1", asks={GPU: "3", "cpu": "500m"}), pod("done", "a100-1", "Succeeded")], [])
    first, second, third = found.machines
    assert (first.free, first.whole) == ({GPU: 5.0, "cpu": 89.5}, {GPU: 8.0, "cpu": 90.0})
    assert (first.taints, first.labels, first.away) == ((("k", "", "NoSchedule"),), {"zone": "z"}, "")
    assert (second.away, third.away, third.whole) == ("is cordoned", "is no node of the cluster", {})
    assert found.spaces == {"vision": {GPU: 3.0, "cpu": 0.5}}


def test_jobs_of_kueue() -> None:
    runs = workload("research", "runs", 1, admitted=True)
    runs["spec"]["priority"] = 100
    runs["status"]["admission"]["podSetAssignments"] = [
        {"name": "main", "flavors": {GPU: "a100", "cpu": "a100"}, "resourceUsage": {GPU: "8", "cpu": "2"}}
    ]
    others = [
        workload("research", "waits", 1, admitted=False),
        workload("research", "done", 1, admitted=True, finished=True),
        workload("research", "held", 1, admitted=False, active=False),
    ]
    found = read("kueue", [pod("x", "a100-1", asks={GPU: "8"}, job="runs")], [runs, *others])
    (job,) = found.jobs
    assert (job.cluster, job.name, job.priority) == ("research", "vision/runs", 100)
    assert job.uses == {("a100", GPU): 8.0, ("a100", "cpu"): 2.0}
    assert job.on == {"a100-1": {GPU: 8.0}}
    assert found.waiting["research"] == 1
    assert snapshot_kinds("kueue") == ("nodes", "pods", "workloads.kueue.x-k8s.io")


def test_pods_of_a_jobset_are_the_jobsets() -> None:
    runs = workload("research", "train", 1, admitted=True)
    member = pod("x", "a100-1", asks={GPU: "8"}, job="train-worker-0")
    member["metadata"]["labels"] = {"jobset.sigs.k8s.io/jobset-name": "train"}
    (job,) = read("kueue", [member], [runs]).jobs
    assert job.on == {"a100-1": {GPU: 8.0}}


def test_jobs_of_volcano() -> None:
    notes = {"scheduling.k8s.io/group-name": "train-3c4d"}
    pods = [
        pod("x", "a100-1", asks={GPU: "8"}, job="train", notes=notes),
        pod("y", asks={GPU: "8"}, job="train", notes=notes),
    ]
    groups = [pod_group("train", "research", "Running"), pod_group("later", "research", "Pending")]
    found = read("volcano", pods, groups)
    (job,) = found.jobs
    assert (job.cluster, job.name, job.uses, job.on) == (
        "research",
        "vision/train",
        {("", GPU): 16.0},
        {"a100-1": {GPU: 8.0}},
    )
    assert found.waiting == {"research": 1}


def test_jobs_by_namespace() -> None:
    found = read("default", [pod("x", "a100-1", asks={GPU: "8"}, job="train"), pod("y", asks={GPU: "8"})])
    assert [(job.cluster, job.name) for job in found.jobs] == [("research", "vision/train")]
    assert found.waiting == {"research": 1}


def test_jobs_of_hived() -> None:
    notes = {
        "hivedscheduler.microsoft.com/pod-scheduling-spec": "virtualCluster: research\npriority: -1\n"
        "leafCellNumber: 2\naffinityGroup:\n  name: vision/gang\n"
    }
    pods = [pod("x", "a100-1", notes=notes, scheduler="hivedscheduler-ds-research"), pod("z", "a100-1")]
    found = read("hived", pods)
    (job,) = found.jobs
    assert (job.name, job.priority, job.borrows, job.on) == ("vision/gang", -1, True, {"a100-1": {CELLS: 2.0}})
    assert found.machines[0].free[CELLS] == 6.0
