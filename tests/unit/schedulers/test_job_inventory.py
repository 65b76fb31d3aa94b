"""Whose jobs a scheduler keeps, and what is left of those that ended."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from syrupy.assertion import SnapshotAssertion

from pai_install.kube.objects import JsonObject
from pai_install.schedulers.job_inventory import BlockingJob, busy_jobs, in_order
from pai_install.schedulers.registry import backend_of
from pai_install.scheduling.model import Backend
from tests.unit.scheduling.usage.objects import pod

GPU = "nvidia.com/gpu"


def jobs_of(
    backend: Backend, answers: Sequence[Iterable[JsonObject]], devices: Collection[str]
) -> tuple[BlockingJob, ...]:
    """answers: the objects of each of the back end's `inventory_resources`."""
    found = backend_of(backend)
    return in_order(found.kept_jobs(dict(zip(found.inventory_resources, answers, strict=True)), devices))


def made(kind: str, name: str, api: str, owner: tuple[str, str, str] | None = None, **parts: Any) -> dict[str, Any]:
    """An object of a kind. owner: kind, version with group, name."""
    metadata: dict[str, Any] = {"name": name, "namespace": "vision"}
    if owner is not None:
        whose, version, called = owner
        metadata["ownerReferences"] = [{"kind": whose, "apiVersion": version, "name": called, "controller": True}]
    return {"kind": kind, "apiVersion": api, "metadata": metadata, **parts}


def workload(name: str, owner: tuple[str, str, str] | None, *conditions: str, **status: Any) -> dict[str, Any]:
    rows = [{"type": one, "status": "True"} for one in conditions]
    parts = {"spec": {"queueName": "research"}, "status": {"conditions": rows, **status}}
    return made("Workload", name, "kueue.x-k8s.io/v1beta2", owner, **parts)


def test_a_workload_stands_for_its_job_until_that_has_ended() -> None:
    """A job that has ended stays a user's; only what Kueue keeps of it goes."""
    workloads = [
        workload("job-a-1", ("Job", "batch/v1", "a"), "QuotaReserved", admission={"clusterQueue": "research"}),
        workload("job-b-1", ("Job", "batch/v1", "b")),
        workload("job-c-1", ("Job", "batch/v1", "c"), "QuotaReserved", "Finished"),
        workload("alone", None),
    ]
    assert jobs_of("kueue", (workloads, ()), (GPU,)) == (
        BlockingJob("Job", "batch", "vision", "a", "runs", "research"),
        BlockingJob("Workload", "kueue.x-k8s.io", "vision", "alone", "waits", "research"),
        BlockingJob("Job", "batch", "vision", "b", "waits", "research"),
        BlockingJob("Workload", "kueue.x-k8s.io", "vision", "job-c-1", "has ended", "research"),
    )


def test_jobsets_go_with_their_kind_also_without_a_workload() -> None:
    api = "jobset.x-k8s.io/v1alpha2"
    sets = [
        made("JobSet", "queued", api, spec={"suspend": True}),
        made("JobSet", "plain", api, spec={}),
        made("JobSet", "over", api, spec={}, status={"terminalState": "Completed"}),
    ]
    admitted = workload("jobset-queued-1", ("JobSet", api, "queued"), "QuotaReserved")
    found = jobs_of("kueue", ([admitted], sets), ())
    assert [(job.name, job.state) for job in found] == [("plain", "runs"), ("queued", "runs"), ("over", "has ended")]
    assert {job.group for job in found} == {"jobset.x-k8s.io"}


def test_volcanos_jobs_and_groups_that_others_made(snapshot: SnapshotAssertion) -> None:
    api, pods = "batch.volcano.sh/v1alpha1", "scheduling.volcano.sh/v1beta1"
    states = {"a": "Running", "b": "Pending", "c": "Completed", "d": "Failed", "e": "Restarting", "f": "Aborted"}
    jobs = [
        made("Job", name, api, spec={"queue": "research"}, status={"state": {"phase": phase}})
        for name, phase in states.items()
    ]
    groups = [
        made("PodGroup", "a-1", pods, ("Job", api, "a"), spec={}, status={"phase": "Running"}),
        made("PodGroup", "p-2", pods, ("Job", "batch/v1", "plain"), spec={}, status={"phase": "Inqueue"}),
        made("PodGroup", "q-3", pods, ("Job", "batch/v1", "over"), spec={}, status={"phase": "Completed"}),
    ]
    found = jobs_of("volcano", (jobs, groups), ())
    assert [str(job) for job in found] == snapshot
    assert {job.group for job in found} == {"batch.volcano.sh", "batch", "scheduling.volcano.sh"}


def test_pods_of_hived_by_their_controller(snapshot: SnapshotAssertion) -> None:
    pods = [
        pod("a-1", "gpu-1", job="a", scheduler="hivedscheduler-ds-research"),
        pod("a-2", job="a", scheduler="hivedscheduler-ds-research"),
        pod("b", scheduler="hivedscheduler-ds-product"),
        pod("c", "gpu-1", phase="Succeeded", scheduler="hivedscheduler-ds-product"),
        pod("other", "gpu-1", asks={GPU: "1"}),
    ]
    assert [str(job) for job in jobs_of("hived", (pods, ()), (GPU,))] == snapshot


def test_without_a_scheduler_of_jobs_pods_count_that_hold_devices() -> None:
    pods = [
        pod("a", "gpu-1", asks={GPU: "1"}),
        pod("b", asks={GPU: "1"}),
        pod("web", "gpu-1", asks={"cpu": "1"}),
        pod("none", "gpu-1", asks={GPU: "0"}),
    ]
    assert [str(job) for job in jobs_of("default", (pods, ()), (GPU,))] == ["Pod vision/a runs", "Pod vision/b waits"]
    assert (
        backend_of("default").inventory_resources
        == backend_of("hived").inventory_resources
        == ("pods", "jobsets.jobset.x-k8s.io")
    )


def test_a_jobset_stands_for_its_pods(snapshot: SnapshotAssertion) -> None:
    """Its kind goes with a change to Volcano: one that ended would keep it."""
    api = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    train = {**api, "metadata": {"namespace": "vision", "name": "train"}}
    done = {**api, "metadata": {"namespace": "vision", "name": "done"}, "status": {"terminalState": "Completed"}}
    own, other = (pod(name, "gpu-1", asks={GPU: "1"}) for name in ("a-1", "b"))
    own["metadata"]["labels"] = {"jobset.sigs.k8s.io/jobset-name": "train"}
    found = jobs_of("default", ((own, other), (train, done)), (GPU,))
    assert [str(job) for job in found] == snapshot


def test_jobs_of_the_self_test_keep_no_scheduler() -> None:
    """They end with their namespaces, seconds after the proof of `vc apply`."""
    runs = BlockingJob("Job", "batch", "vision", "a", "runs")
    proof = BlockingJob("JobSet", "jobset.x-k8s.io", "scheduler-self-test-quota", "more", "runs")
    assert busy_jobs([runs, proof]) == (runs,)
