"""The book of pods with devices: which lines follow from what the API server says, at any order and after any gap."""

from __future__ import annotations

import copy
import time
from calendar import timegm
from typing import Any

import pytest

from pai_install.agents.common.ledger import Hold, Ledger, Sample, merged, read
from pai_install.agents.common.utilization import Series, Work
from pai_install.agents.common.utilization import condition as use_condition
from pai_install.agents.job_recorder.admissions import CLUSTER_QUEUES, WORKLOADS
from pai_install.agents.job_recorder.book import Book
from tests.unit.agents.job_recorder.objects import Object, job, pod

KUEUE = "kueue.x-k8s.io/v1beta2"


def at(seconds: int) -> int:
    """So many seconds into 2026."""
    return timegm(time.strptime("2026-01-01", "%Y-%m-%d")) + seconds


def moment(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at(seconds)))


def condition(kind: str, seconds: int, status: str = "True", reason: str = "") -> Object:
    return {"type": kind, "status": status, "reason": reason, "lastTransitionTime": moment(seconds)}


def running(uid: str = "pod-a", made: int = 1, bound: int = 5, **more: Any) -> Object:
    """A pod of alice's Job with two devices on g1."""
    found = pod(0, uid, made=made, **more)
    found["status"]["conditions"] = [condition("PodScheduled", bound)]
    found["status"]["startTime"] = moment(bound + 1)
    return found


def ended(item: Object, seconds: int, phase: str = "Succeeded") -> Object:
    found = copy.deepcopy(item)
    found["status"]["phase"] = phase
    state = {"terminated": {"exitCode": 0, "finishedAt": moment(seconds)}}
    found["status"]["containerStatuses"] = [{"name": "main", "state": state}]
    return found


def deleted(item: Object, seconds: int) -> Object:
    found = copy.deepcopy(item)
    found["metadata"]["deletionTimestamp"] = moment(seconds)
    return found


def workload(conditions: list[Object], made: int = 0, cluster: str = "research", name: str = "train") -> Object:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "controller": True}
    flavors = [{"name": "main", "flavors": {"cpu": "v100", "nvidia.com/gpu": "v100"}}]
    metadata = {"name": f"job-{name}", "namespace": "vision", "uid": f"w-{name}", "ownerReferences": [owner]}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {**metadata, "creationTimestamp": moment(made)},
        "spec": {"priorityClassRef": {"name": "prod"}},
        "status": {
            "conditions": conditions,
            **({"admission": {"clusterQueue": cluster, "podSetAssignments": flavors}} if cluster else {}),
        },
    }


class Kept:
    """A book and its file. lines: what it has appended."""

    def __init__(self, lines: list[str] | None = None) -> None:
        self.lines = lines or []
        self.book = Book(frozenset({"vision"}), {"g1": "V100"}.get, read(self.lines))  # type: ignore[arg-type]

    def see(self, resource: str, *items: Object, now: int, gone: bool = False) -> None:
        for item in items:
            self.book.see(resource, item, at(now), gone=gone)
        self.write(now)

    def write(self, now: int) -> None:
        self.lines += self.book.due(at(now))
        self.book.forget(at(now))

    @property
    def ledger(self) -> Ledger:
        return read(self.lines)

    @property
    def hold(self) -> Hold:
        (found,) = self.ledger.holds.values()
        return found


def test_pod_from_devices_to_end() -> None:
    kept = Kept()
    kept.see("batch/jobs", job(), now=1)
    pending = running()
    del pending["spec"]["nodeName"]
    kept.see("pods", pending, now=2)
    assert not kept.ledger.holds
    kept.see("pods", running(), now=9)
    hold = kept.hold
    assert (hold.devices, hold.start, hold.end, hold.queued) == (2, at(5), None, at(1))
    assert (hold.user, hold.namespace, hold.job, hold.job_uid) == ("alice", "vision", "train", "job-1")
    assert (hold.node, hold.sku) == ("g1", "V100")
    kept.see("pods", ended(running(), 3605), now=3607)
    assert (kept.hold.end, kept.hold.reason, kept.hold.estimated) == (at(3605), "completed", False)


def test_pod_with_a_node_and_no_time_does_not_begin_with_its_creation() -> None:
    kept = Kept()
    kept.see("batch/jobs", job(), now=1)
    early = running()
    early["status"] = {"phase": "Pending"}
    kept.see("pods", early, now=3)
    assert not kept.ledger.holds
    kept.see("pods", running(), now=9)
    assert kept.hold.start == at(5)


def test_times_are_those_of_the_objects_when_the_recorder_comes_late() -> None:
    kept = Kept()
    kept.see("batch/jobs", job(), now=5000)
    kept.see("pods", ended(running(), 3605), now=5000)
    assert (kept.hold.start, kept.hold.end) == (at(5), at(3605))


def test_a_line_appears_once() -> None:
    kept = Kept()
    kept.see("batch/jobs", job(), now=1)
    for now in range(10, 100, 10):
        kept.see("pods", running(), now=now)
    assert sum('"start"' in line and "uid" in line for line in kept.lines) == 1
    for now in range(100, 200, 10):
        kept.see("pods", ended(running(), 99), now=now)
    assert sum('"event":"end"' in line for line in kept.lines) == 1


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (deleted(ended(running(), 700, "Failed"), 690), (700, "stopped", False)),
        (deleted(running(), 730), (730, "stopped", False)),
        (ended(running(), 700, "Failed"), (700, "failed", False)),
        (running(), (900, "stopped", True)),
    ],
)
def test_end_of_a_deleted_pod(last: Object, expected: tuple[int, str, bool]) -> None:
    kept = Kept()
    kept.see("batch/jobs", job(), now=1)
    kept.see("pods", running(), now=9)
    kept.see("pods", last, now=900, gone=True)
    assert (kept.hold.end, kept.hold.reason, kept.hold.estimated) == (at(expected[0]), *expected[1:])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (condition("DisruptionTarget", 690, reason="PreemptionByScheduler"), "preempted"),
        (condition("DisruptionTarget", 690, reason="EvictionByEvictionAPI"), "evicted"),
        (condition("Ready", 690, "False", "Evict"), "preempted"),
    ],
)
def test_why_a_scheduler_took_the_devices(row: Object, reason: str) -> None:
    kept = Kept()
    kept.see("batch/jobs", job(), now=1)
    last = deleted(ended(running(), 700, "Failed"), 720)
    last["status"]["conditions"].append(row)
    kept.see("pods", last, now=701, gone=True)
    assert (kept.hold.reason, kept.hold.end) == (reason, at(700))


def test_restart_ends_what_went_while_nobody_watched() -> None:
    kept = Kept()
    kept.see("batch/jobs", job(), now=1)
    kept.see("pods", running(), now=9)
    kept.write(320)
    after = Kept(kept.lines)
    after.book.retain("pods", set(), at(9000))
    after.write(9000)
    assert (after.hold.end, after.hold.estimated, after.hold.job) == (at(320), True, "train")


def test_restart_goes_on_with_what_runs_and_repeats_no_end() -> None:
    kept = Kept()
    kept.see("batch/jobs", job(), now=1)
    kept.see("pods", running(), ended(running("pod-b"), 60), now=100)
    after = Kept(list(kept.lines))
    after.see("batch/jobs", job(), now=500)
    after.see("pods", running(), ended(running("pod-b"), 60), now=500)
    after.book.retain("pods", {"pod-a", "pod-b"}, at(500))
    after.write(501)
    assert after.ledger.holds["pod-a"].end is None
    assert sum('"event":"end"' in line for line in after.lines) == 1


def test_two_recorders_agree() -> None:
    one, other = Kept(), Kept()
    one.see("batch/jobs", job(), now=1)
    one.see("pods", running(), now=9)
    other.see("pods", ended(running(), 60), now=80)
    other.see("batch/jobs", job(), now=81)
    other.write(100)
    both = merged([one.ledger, other.ledger]).holds["pod-a"]
    assert (both.start, both.end, both.queued, both.job) == (at(5), at(60), at(1), "train")


def test_new_month_repeats_what_runs() -> None:
    kept = Kept()
    kept.see("batch/jobs", job(), now=1)
    kept.see("pods", running(), ended(running("pod-b"), 20), now=30)
    kept.write(100)
    kept.book.again()
    kept.lines.clear()
    kept.write(200)
    assert set(kept.ledger.holds) == {"pod-a"}
    assert kept.hold.start == at(5)


def test_kueue_says_since_when_a_job_waited_and_that_it_was_preempted() -> None:
    kept = Kept()
    kept.see("batch/jobs", job(), now=1)
    kept.see(WORKLOADS, workload([], cluster=""), now=2)
    admitted = [condition("QuotaReserved", 600), condition("Admitted", 601)]
    kept.see(WORKLOADS, workload(admitted), now=602)
    first = running("pod-a", 0, 605)
    first["metadata"]["creationTimestamp"] = moment(602)
    kept.see("pods", first, now=606)
    assert (kept.hold.queued, kept.hold.start, kept.hold.cluster) == (at(0), at(605), "research")
    assert (kept.hold.flavor, kept.hold.priority) == ("v100", "prod")
    taken = [condition("Admitted", 900, "False"), condition("Evicted", 900), condition("Preempted", 900)]
    kept.see(WORKLOADS, workload(taken, cluster=""), now=901)
    kept.see("pods", deleted(ended(first, 930, "Failed"), 931), now=932, gone=True)
    assert (kept.hold.end, kept.hold.reason) == (at(930), "preempted")
    again = [condition("Admitted", 2000), condition("Evicted", 2000, "False"), condition("Preempted", 2000, "False")]
    kept.see(WORKLOADS, workload(again), now=2001)
    second = running("pod-b", 0, 2004)
    second["metadata"]["creationTimestamp"] = moment(2002)
    kept.see("pods", second, now=2005)
    assert kept.ledger.holds["pod-b"].queued == at(900)
    kept.see("pods", ended(second, 2100, "Failed"), now=2101, gone=True)
    third = running("pod-c", 0, 2103)
    third["metadata"]["creationTimestamp"] = moment(2102)
    kept.see("pods", third, now=2110)
    assert kept.ledger.holds["pod-c"].queued == at(2102), "a pod that replaces another one did not wait in the queue"


def test_waiting_time_that_nobody_saw_is_unknown() -> None:
    kept = Kept()
    kept.see("batch/jobs", job(), now=5000)
    admitted = [condition("Admitted", 2000), condition("Evicted", 2000, "False")]
    kept.see(WORKLOADS, workload(admitted), now=5000)
    late = running("pod-b", 0, 2004)
    late["metadata"]["creationTimestamp"] = moment(2002)
    kept.see("pods", late, now=5000)
    assert kept.hold.queued is None


def test_reason_of_the_scheduler_may_come_after_the_end() -> None:
    kept = Kept()
    kept.see("batch/jobs", job(), now=1)
    kept.see(WORKLOADS, workload([condition("Admitted", 3)]), now=3)
    kept.see("pods", running(), now=9)
    kept.see("pods", deleted(ended(running(), 930, "Failed"), 931), now=932, gone=True)
    assert kept.hold.reason == "stopped"
    kept.see(WORKLOADS, workload([condition("Evicted", 925), condition("Preempted", 925)], cluster=""), now=934)
    assert kept.hold.reason == "preempted"


def test_volcano_says_since_when_a_job_waited() -> None:
    kept = Kept()
    phases = [
        {"status": "Pending", "lastTransitionTime": moment(10)},
        {"status": "Running", "lastTransitionTime": moment(70)},
    ]
    made = {**job(status={"conditions": phases}), "apiVersion": "batch.volcano.sh/v1alpha1"}
    first, later = running("pod-a", 50, 60), running("pod-b", 0, 300)
    later["metadata"]["creationTimestamp"] = moment(290)
    for item in (first, later):
        item["metadata"]["labels"]["volcano.sh/job-name"] = "train"
        item["metadata"]["labels"].pop("batch.kubernetes.io/job-name")
    kept.see("batch.volcano.sh/jobs", made, now=80)
    kept.see("pods", first, later, now=310)
    assert (kept.ledger.holds["pod-a"].queued, kept.ledger.holds["pod-b"].queued) == (at(10), at(290))


def test_quota_with_the_time_of_its_change() -> None:
    kept = Kept()
    resources = [{"name": "cpu", "nominalQuota": "9"}, {"name": "nvidia.com/gpu", "nominalQuota": "16"}]
    queue = {
        "metadata": {
            "name": "research",
            "creationTimestamp": moment(0),
            "managedFields": [{"time": moment(50)}, {"time": moment(99), "subresource": "status"}],
        },
        "spec": {"resourceGroups": [{"flavors": [{"name": "v100", "resources": resources}]}]},
    }
    kept.see(CLUSTER_QUEUES, queue, now=100)
    kept.see(CLUSTER_QUEUES, queue, now=200)
    (quota,) = kept.ledger.quotas
    assert (quota.cluster, quota.at, quota.units) == ("research", at(50), (("v100", 16),))
    assert sum("quota" in line for line in kept.lines) == 1


def test_use_of_the_devices_each_hour_and_at_the_end() -> None:
    kept = Kept()
    kept.see("batch/jobs", job(), now=1)

    def measured(seconds: int, busy_s: int, item: Object) -> Object:
        series = Series(at(seconds), ((at(seconds), 50),))
        found = copy.deepcopy(item)
        row = use_condition(series, series, 2, Work(busy_s * 1000, seconds * 2000), moment(seconds))
        found["status"]["conditions"].append(row)
        return found

    for seconds in (60, 120, 3660, 3720):
        kept.see("pods", measured(seconds, seconds, running()), now=seconds + 1)
    assert [one.at for one in kept.hold.samples] == [at(60), at(3660)]
    kept.see("pods", measured(3720, 3720, ended(running(), 3700)), now=3721)
    assert kept.hold.samples[-1] == Sample(at(3720), 3720, 7440)


def test_pod_that_names_the_job_of_another_user_has_no_job() -> None:
    kept = Kept()
    theirs = job(user="bob", notes={"pai-install/priority": "prod"})
    theirs["metadata"]["labels"]["pai-install/virtual-cluster"] = "research"
    kept.see("batch/jobs", theirs, now=1)
    kept.see("pods", running(), now=2)
    kept.write(30)
    assert (kept.hold.user, kept.hold.job, kept.hold.cluster, kept.hold.priority) == ("alice", "", "", "")


def test_virtual_cluster_is_that_of_the_queue_and_not_that_of_the_pod() -> None:
    kept = Kept()
    own = job()
    own["metadata"]["labels"] |= {"kueue.x-k8s.io/queue-name": "default", "pai-install/virtual-cluster": "default"}
    lying = running()
    lying["metadata"]["labels"]["pai-install/virtual-cluster"] = "research"
    kept.see("batch/jobs", own, now=1)
    kept.see("pods", lying, now=9)
    assert kept.hold.cluster == "default"


@pytest.mark.parametrize("start", [-10, 999_999])
def test_node_cannot_move_the_start_beyond_the_life_of_the_pod(start: int) -> None:
    kept = Kept()
    kept.see("batch/jobs", job(), now=1)
    kept.see("pods", running(bound=start), now=50)
    assert kept.hold.start == at(1 if start < 0 else 50)


def test_node_cannot_move_the_end_before_the_start_or_into_the_future() -> None:
    for finished, expected in ((-500, 5), (999_999, 90)):
        kept = Kept()
        kept.see("batch/jobs", job(), now=1)
        kept.see("pods", running(), now=50)
        kept.see("pods", ended(running(), finished), now=90)
        assert kept.hold.end == at(expected)


@pytest.mark.parametrize(
    ("limit", "devices"), [("8", 8), (8, 8), ("1e3", 0), ("-1", 0), (None, 0), ({}, 0), ("10k", 0)]
)
def test_devices_are_counted_by_whole_numbers(limit: object, devices: int) -> None:
    kept = Kept()
    kept.see("batch/jobs", job(), now=1)
    item = running()
    item["spec"] = copy.deepcopy(item["spec"])
    item["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": limit, "cpu": "4", "rdma/hca": "1"}
    kept.see("pods", item, now=9)
    assert [one.devices for one in kept.ledger.holds.values()] == ([devices] if devices else [])


def test_pods_of_hived_have_the_cells_that_it_gave() -> None:
    kept = Kept()
    item = running(alone=True)
    item["spec"] = copy.deepcopy(item["spec"])
    item["spec"]["containers"][0]["resources"]["limits"] = {"hivedscheduler.microsoft.com/pod-scheduling-enable": 1}
    item["spec"]["schedulerName"] = "hivedscheduler-ds-vc1"
    item["metadata"]["annotations"] = {"hivedscheduler.microsoft.com/pod-leaf-cell-isolation": "0,1,5"}
    kept.see("pods", item, now=9)
    assert (kept.hold.devices, kept.hold.cluster, kept.hold.job) == (3, "vc1", item["metadata"]["name"])


def test_what_could_not_be_written_is_due_again() -> None:
    kept = Kept()
    kept.book.see("batch/jobs", job(), at(1))
    kept.book.see("pods", ended(running(), 60), at(61))
    lost = kept.book.due(at(62))
    kept.book.again()
    kept.write(400)
    assert {line for line in lost if "alive" not in line} <= set(kept.lines)
    assert kept.hold.end == at(60)
