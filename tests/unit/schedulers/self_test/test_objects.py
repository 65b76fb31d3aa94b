"""The objects that the self-test makes: safe for everybody else, and what each scheduler asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest

from pai_install.schedulers.kueue import self_test as kueue
from pai_install.schedulers.self_test.manifests import gang_objects, namespaces, queue_objects, scenarios, setting
from pai_install.schedulers.self_test.model import RESOURCE, Gang, Rank, Scenario
from pai_install.schedulers.self_test.objects import PRIORITIES as OURS_PRIORITIES
from pai_install.schedulers.self_test.objects import CellSite, SelfTestContext, amount
from pai_install.schedulers.self_test.scenarios import Bounds, on_cells, on_cores
from pai_install.schedulers.volcano import self_test as volcano
from pai_install.scheduling.job_queue import HIVED_MARKER
from pai_install.scheduling.model import BACKENDS, PRIORITIES, Backend

PLAYED: tuple[Backend, ...] = BACKENDS
STAGE = CellSite("research", "product", "a100", "a100", unit=2, room=4, total=8, devices=True)


def context(backend: Backend) -> SelfTestContext:
    return SelfTestContext(
        backend, "run-1", "store/busybox@sha256:1", ("w1", "w2"), cells=STAGE if backend == "hived" else None
    )


def chosen(backend: Backend) -> tuple[Scenario, ...]:
    if backend == "hived":
        return (
            *on_cells(Bounds(), HIVED_MARKER, STAGE.room, STAGE.total),
            on_cores(Bounds(), HIVED_MARKER, STAGE.room),
        )
    return scenarios(backend, Bounds(requeue_s=50))


def scenario(backend: Backend, name: str) -> Scenario:
    return next(one for one in chosen(backend) if one.name == name)


def everything(backend: Backend) -> Iterator[dict[str, Any]]:
    yield from (*setting(context(backend)), *namespaces(context(backend), chosen(backend)))
    for one in chosen(backend):
        yield from queue_objects(context(backend), one)
        for gang in one.gangs.values():
            yield from gang_objects(context(backend), one, gang)


def pod_specs(value: Any) -> Iterator[dict[str, Any]]:
    """The specs of pods, wherever they stand in an object."""
    if isinstance(value, dict):
        if "containers" in value:
            yield value
        for entry in value.values():
            yield from pod_specs(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from pod_specs(entry)


@pytest.mark.parametrize("backend", PLAYED)
def test_every_object_is_marked_and_named_as_the_tests_own(backend: Backend) -> None:
    for item in everything(backend):
        metadata = item["metadata"]
        assert metadata["labels"] | {"pai-install/probe": "scheduler", "pai-install/run": "run-1"} == metadata["labels"]
        begins = "scheduler-self-test-" if item["kind"] == "Namespace" or "namespace" in metadata else "pai-self-test"
        assert metadata.get("namespace", metadata["name"]).startswith(begins)


@pytest.mark.parametrize("backend", PLAYED)
def test_no_pod_takes_anything_from_users(backend: Backend) -> None:
    """They hold devices of the test, or cores of which they take nothing from others; anybody's pod is above them."""
    classes = {item["metadata"]["name"]: item for item in everything(backend) if item["kind"] == "PriorityClass"}
    assert set(classes) == {"pai-self-test-low", "pai-self-test-high"}
    for row in classes.values():
        assert row["preemptionPolicy"] == "Never" or row["value"] < min(PRIORITIES.values())
    assert backend != "kueue" or all(row["value"] >= 0 for row in classes.values()), "JobSet makes a label of it"
    specs = [spec for item in everything(backend) for spec in pod_specs(item)]
    assert specs
    for spec in specs:
        (container,) = spec["containers"]
        (resource,) = container["resources"]["requests"]
        assert container["resources"]["limits"] == container["resources"]["requests"]
        assert resource.startswith(RESOURCE) or resource in ("cpu", HIVED_MARKER)
        if resource == "cpu":
            assert classes[spec["priorityClassName"]]["preemptionPolicy"] == "Never"


@pytest.mark.parametrize("backend", PLAYED)
def test_pods_are_small_and_end_at_once(backend: Backend) -> None:
    for item in everything(backend):
        for spec in pod_specs(item):
            (container,) = spec["containers"]
            assert container["image"] == "store/busybox@sha256:1"
            assert "trap 'exit 143' TERM" in container["command"][-1]
            assert spec["terminationGracePeriodSeconds"] == 2
            assert spec["securityContext"]["runAsNonRoot"]
            assert not spec["automountServiceAccountToken"]


@pytest.mark.parametrize("backend", PLAYED)
def test_each_scenario_has_a_namespace_and_devices_of_its_own(backend: Backend) -> None:
    found = chosen(backend)
    assert len({one.namespace for one in found}) == len(found)
    devices = [one.resource for one in found if one.capacity]
    assert len(set(devices)) == len(devices)
    assert all(one.capacity % 2 == 0 for one in found), "two machines share them"
    assert all(len(f"{one.namespace}-{queue.name}") <= 63 for one in found for queue in one.queues)


@pytest.mark.parametrize("backend", PLAYED)
def test_the_objects_of_a_gang_have_all_its_pods(backend: Backend) -> None:
    for one in chosen(backend):
        for gang in one.gangs.values():
            assert sum(map(pods_of, gang_objects(context(backend), one, gang))) == gang.size


def pods_of(item: dict[str, Any]) -> int:
    spec = item["spec"]
    match item["kind"], item["apiVersion"].partition("/")[0]:
        case "Pod", _:
            return 1
        case "JobSet", _:
            return sum(int(row["template"]["spec"]["parallelism"]) for row in spec["replicatedJobs"])
        case "Job", "batch.volcano.sh":
            assert spec["minAvailable"] == sum(task["replicas"] for task in spec["tasks"])
            return int(spec["minAvailable"])
        case _:
            assert spec["parallelism"] == spec["completions"]
            return int(spec["parallelism"])


def test_kueue_lends_within_a_cohort_and_takes_back() -> None:
    flavor, *queues = queue_objects(context("kueue"), scenario("kueue", "borrow"))
    assert flavor["spec"]["topologyName"] == "pai-self-test"
    owner, local, guest, _ = queues
    assert (owner["kind"], local["kind"], guest["metadata"]["name"]) == (
        "ClusterQueue",
        "LocalQueue",
        "pai-self-test-borrow-guest",
    )
    assert owner["spec"]["cohortName"] == guest["spec"]["cohortName"] == "pai-self-test-borrow"
    assert owner["spec"]["preemption"]["reclaimWithinCohort"] == "Any"
    quota = {"name": "pai-install/self-test-borrow", "nominalQuota": "2", "borrowingLimit": "2"}
    assert guest["spec"]["resourceGroups"][0]["flavors"][0]["resources"] == [quota]
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "scheduler-self-test-borrow"}}
    assert owner["spec"]["namespaceSelector"] == selector


def test_a_queue_of_kueue_that_lends_nothing_has_no_cohort_and_no_limits() -> None:
    flavor, queue, _ = queue_objects(context("kueue"), scenario("kueue", "cores"))
    assert "topologyName" not in flavor["spec"]
    assert "cohortName" not in queue["spec"]
    (group,) = queue["spec"]["resourceGroups"]
    assert group["coveredResources"] == ["cpu"]
    assert group["flavors"][0]["resources"] == [{"name": "cpu", "nominalQuota": "20m"}]


def test_jobs_of_kueue_name_queue_and_priority_and_take_places_by_topology() -> None:
    found = scenario("kueue", "gang")
    (job,) = gang_objects(context("kueue"), found, found.gangs["first"])
    (jobset,) = gang_objects(context("kueue"), found, found.gangs["whole"])
    for item in (job, jobset):
        assert item["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "only"
        assert item["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] == "pai-self-test-low"
    anywhere = {"kueue.x-k8s.io/podset-unconstrained-topology": "true"}
    assert job["spec"]["template"]["metadata"]["annotations"] == anywhere
    by_quota = scenario("kueue", "requeue")
    (plain,) = gang_objects(context("kueue"), by_quota, by_quota.gangs["half"])
    assert "annotations" not in plain["spec"]["template"]["metadata"]


def test_a_job_of_volcano_is_a_gang_that_restarts_whole() -> None:
    found = scenario("volcano", "gang")
    (job,) = gang_objects(context("volcano"), found, found.gangs["whole"])
    assert job["spec"]["minAvailable"] == 3
    assert job["spec"]["policies"] == [{"event": "PodEvicted", "action": "RestartJob"}]
    assert job["spec"]["queue"] == "pai-self-test-gang-only"
    assert {spec["schedulerName"] for spec in pod_specs(job)} == {"volcano"}
    (queue,) = queue_objects(context("volcano"), found)
    assert queue["spec"]["deserved"] == queue["spec"]["capability"] == {"pai-install/self-test-gang": "4"}


def test_a_queue_of_volcano_may_use_the_groups_of_the_machines() -> None:
    found = SelfTestContext("volcano", "run-1", "busybox", ("w1", "w2"), groups=("a100", "h100"))
    (queue,) = queue_objects(found, scenario("volcano", "gang"))
    chosen_groups = queue["spec"]["affinity"]["nodeGroupAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert chosen_groups == ["a100", "h100"]
    (queue,) = queue_objects(context("volcano"), scenario("volcano", "gang"))
    assert "affinity" not in queue["spec"]


def test_the_default_scheduler_has_quotas_of_namespaces() -> None:
    made = {one.name: queue_objects(context("default"), one) for one in chosen("default")}
    assert {name for name, found in made.items() if found} == {"quota", "cores"}
    assert made["cores"][0]["spec"]["hard"] == {"requests.cpu": "20m"}
    assert made["quota"][0]["spec"]["hard"] == {"requests.pai-install/self-test-quota": "2"}


def test_pods_of_cores_stay_on_the_machines_of_the_test() -> None:
    found = scenario("kueue", "cores")
    (job,) = gang_objects(context("kueue"), found, found.gangs["first"])
    (spec,) = pod_specs(job)
    assert "'values': ['w1', 'w2']" in str(spec["affinity"])


def test_ranks_have_classes() -> None:
    assert set(OURS_PRIORITIES) == set(get_args(Rank))


@pytest.mark.parametrize(("units", "text"), [(0, "0"), (3, "3")])
def test_amounts_of_devices(units: int, text: str) -> None:
    assert amount(scenario("kueue", "gang"), units) == text


CONFIGURATION = """\
apiVersion: config.kueue.x-k8s.io/v1beta2
waitForPodsReady:
  timeout: {timeout}
  {more}
featureGates: {{}}
"""


@pytest.mark.parametrize(
    ("timeout", "more", "seconds"),
    [
        ("5m", "blockAdmission: false", 300),
        ('"1m30s"', "recoveryTimeout: 3h", 90),
        ("1h", "", 3600),
        ("20s", "blockAdmission: true", 0),
    ],
)
def test_the_time_that_kueue_gives_is_its_own_setting(timeout: str, more: str, seconds: float) -> None:
    text = CONFIGURATION.format(timeout=timeout, more=more)
    strange = {"data": {"ca.crt": "x"}}
    assert kueue.pods_ready_s([strange, {"data": {"configuration.yaml": text}}]) == seconds


def test_without_the_setting_kueue_waits_for_ever() -> None:
    assert kueue.pods_ready_s([{"data": {"configuration.yaml": "manageJobsWithoutQueueName: false"}}, {}]) == 0


def test_what_schedulers_say_of_jobs_that_wait() -> None:
    workload = {
        "status": {
            "conditions": [
                {"type": "QuotaReserved", "status": "False", "message": "insufficient quota"},
                {"type": "Evicted", "status": "True", "message": "preempted"},
                {"type": "Evicted", "status": "False", "message": "not now"},
                {"type": "Admitted", "status": "True", "message": "fine"},
            ]
        }
    }
    assert kueue.why([workload, workload, {}, {"status": None}]) == "insufficient quota; preempted"
    group = {"status": {"conditions": [{"type": "Unschedulable", "status": "True", "message": "3/3 tasks in gang"}]}}
    assert volcano.why([group, {"status": {}}]) == "3/3 tasks in gang"


def test_gangs_are_as_large_as_their_roles() -> None:
    assert Gang("x", "only", (1, 2)).size == 3
