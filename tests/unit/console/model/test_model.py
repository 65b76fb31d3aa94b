"""The read model: it follows the cluster, forgets what is gone, and no object stops it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from pai_install.cluster.client import ApiError, NoClusterError, Select, WatchEvent
from pai_install.console.errors import RestError
from pai_install.console.model.query import JobQuery
from pai_install.console.model.read_model import ReadModel
from pai_install.console.model.reduced import reduced, reduced_pod
from pai_install.console.model.shelf import Shelf
from pai_install.console.model.visibility import FIRST_S, KEPT_S, Visibility
from pai_install.console.model.watching import KindWatch
from pai_install.jobs.state import states_of
from pai_install.kube.model import Ref
from pai_install.profile.publish import profile_object
from pai_install.scheduling.job_kinds import JOBSET
from tests.unit.console.conftest import ALICE, CALLERS, ROLES, eventually
from tests.unit.console.live import LiveClients, LiveCluster
from tests.unit.jobs.sites import research
from tests.unit.jobs.test_state import holds, job, pod, workload

ALL = JobQuery()


@pytest.fixture
def model(clients: LiveClients) -> Iterator[ReadModel]:
    """A model that is up to date."""
    made = ReadModel(clients)
    made.load()
    eventually(lambda: made.is_ready)
    yield made
    made.stop()


def states(model: ReadModel) -> dict[str, str]:
    return {view.job.label: view.job.state for view in model.jobs.page(ALL, None)}


def with_uid(item: dict[str, Any], uid: str) -> dict[str, Any]:
    return {**item, "metadata": {**item["metadata"], "uid": uid}}


def test_a_change_in_the_cluster_is_seen(model: ReadModel, kubernetes: LiveCluster) -> None:
    kubernetes.put(job())
    eventually(lambda: states(model) == {"ps-job": "WAITING"})
    for role in ("ps-server", "worker-v2"):
        kubernetes.put(pod(role, 0), pod(role, 1))
    eventually(lambda: states(model) == {"ps-job": "RUNNING"})
    kubernetes.delete([Ref("pod", "ps-server-0-01", "vision")])
    eventually(lambda: states(model) == {"ps-job": "STARTING"})
    kubernetes.delete([Ref("jobset", "ps-job", "vision")])
    eventually(lambda: states(model) == {})


def test_the_reason_of_the_scheduler_is_seen(model: ReadModel, kubernetes: LiveCluster) -> None:
    kubernetes.put(job(), workload(holds("QuotaReserved", "no quota", "False")))
    eventually(lambda: [one.job.why for one in model.jobs.page(ALL, None)] == ["waits for quota: no quota"])
    kubernetes.put(workload(holds("QuotaReserved", "Quota reserved")))
    eventually(lambda: [one.job.why for one in model.jobs.page(ALL, None)] == [""])


def warning(uid: str) -> dict[str, Any]:
    """An event about an object."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "vision"},
        "involvedObject": {"uid": uid},
        "type": "Warning",
        "reason": "FailedCreate",
        "message": "quota exceeded",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }


def test_a_warning_of_a_pod_that_does_not_start_is_the_reason(model: ReadModel, kubernetes: LiveCluster) -> None:
    kubernetes.put(job(), with_uid(pod("ps-server", 0, "Pending"), "18"))
    eventually(lambda: states(model) == {"ps-job": "STARTING"})
    kubernetes.put(warning("18"))
    eventually(lambda: [it.job.why for it in model.jobs.page(ALL, None)] == ["FailedCreate: quota exceeded"])


def test_a_warning_is_the_reason_where_no_one_has_another(model: ReadModel, kubernetes: LiveCluster) -> None:
    kubernetes.put(with_uid(job(), "17"))
    kubernetes.put(warning("17"))
    eventually(lambda: [it.job.why for it in model.jobs.page(ALL, None)] == ["FailedCreate: quota exceeded"])
    kubernetes.delete([Ref("event", "e", "vision")])
    eventually(lambda: [it.job.why for it in model.jobs.page(ALL, None)] == [""])
    part = {"kind": "Job", "namespace": "vision", "name": "ps-job-worker-v2-0", "uid": "18"}
    kubernetes.put({**warning("18"), "involvedObject": part})
    eventually(lambda: [it.job.why for it in model.jobs.page(ALL, None)] == ["FailedCreate: quota exceeded"])
    kubernetes.delete([Ref("event", "e", "vision")])
    eventually(lambda: [it.job.why for it in model.jobs.page(ALL, None)] == [""])


def test_after_a_gap_objects_that_are_gone_are_forgotten(model: ReadModel, kubernetes: LiveCluster) -> None:
    kubernetes.put(job())
    eventually(lambda: states(model) == {"ps-job": "WAITING"})
    assert model._contents is not None
    for watch in model._contents.watches:
        watch.sleep = lambda _seconds: time.sleep(0.01)
    before = [id(queue) for _, queue in kubernetes.queues]
    kubernetes.lose(ApiError("too old", reason="Expired"))
    everything = {select for select, _ in kubernetes.queues}
    eventually(lambda: {select for select, queue in kubernetes.queues if id(queue) not in before} == everything)
    eventually(lambda: model.age > 0)
    del kubernetes.objects[Ref("jobset", "ps-job", "vision")]  # no watch tells
    assert states(model) == {"ps-job": "WAITING"}
    kubernetes.broken = None
    eventually(lambda: states(model) == {})
    eventually(lambda: model.age == 0)


def test_before_the_first_reading_the_console_is_not_ready(clients: LiveClients) -> None:
    empty = ReadModel(clients)
    for ask in (lambda: empty.jobs, lambda: empty.profile, lambda: empty.visible(ALICE)):
        with pytest.raises(RestError) as caught:
            ask()
        assert caught.value.status == 503


def test_a_site_without_a_profile_is_read_once_it_has_one(kubernetes: LiveCluster, clients: LiveClients) -> None:
    kubernetes.objects.clear()
    empty = ReadModel(clients)
    empty.load()
    assert not empty.is_ready
    kubernetes.put(profile_object(research()))
    empty.load()
    assert empty.profile.groups


def test_counts_follow_the_jobs(model: ReadModel, kubernetes: LiveCluster) -> None:
    kubernetes.put(job())
    eventually(lambda: model.jobs.count(ALL, None) == 1)
    running = JobQuery(states=frozenset({"RUNNING"}))
    assert model.jobs.count(running, None) == 0
    for role in ("ps-server", "worker-v2"):
        kubernetes.put(pod(role, 0), pod(role, 1))
    eventually(lambda: model.jobs.count(running, None) == 1)
    assert model.jobs.count(running, {"nlp"}) == 0
    kubernetes.delete([Ref("jobset", "ps-job", "vision")])
    eventually(lambda: model.jobs.count(ALL, None) == 0)
    assert not model.jobs._counts
    assert not model.jobs._named
    assert not model.jobs._order


HOSTILE: list[Any] = [
    {},
    {"metadata": None},
    {"metadata": []},
    {"metadata": {"name": "x", "uid": "1", "labels": "no"}, "spec": {"containers": [1, "a", None]}},
    {
        "metadata": {
            "name": "x",
            "uid": "2",
            "labels": {"pai-install/user": 3},
            "annotations": {"pai-install/roles": "["},
        }
    },
    {"metadata": {"name": "x", "uid": "3"}, "spec": {"replicatedJobs": [{"replicas": 2**63, "template": {"spec": 3}}]}},
    {"metadata": {"name": "x", "uid": "4", "ownerReferences": [None, {"controller": "yes"}]}, "status": "text"},
    {"metadata": {"name": "x", "uid": "5", "creationTimestamp": 17}, "status": {"conditions": {"a": 1}}},
    {"metadata": {"name": "\ud800", "uid": "6"}, "status": {"restarts": "many"}},
    {"metadata": {"name": "x", "uid": "7", "annotations": {"pai-install/tags": '{"tags": [{"a": 1}, 3, null]}'}}},
    {"metadata": {"name": "x", "uid": "8", "annotations": {"pai-install/job-name": "x" * 300_000}}},
    {"metadata": {"name": "x", "uid": {"a": 1}}, "involvedObject": {"uid": []}},
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
@pytest.mark.parametrize("kind", ["JobSet", "Pod", "Node", "Event", "Workload", "ConfigMap"])
def test_no_object_stops_the_model(model: ReadModel, kubernetes: LiveCluster, kind: str, number: int) -> None:
    api = {"JobSet": "jobset.x-k8s.io/v1alpha2", "Workload": "kueue.x-k8s.io/v1beta1"}.get(kind, "v1")
    item = {**HOSTILE[number], "apiVersion": api, "kind": kind}
    for _, queue in kubernetes.queues:
        queue.put(WatchEvent("ADDED", item))
        queue.put(WatchEvent("MODIFIED", item))
        queue.put(WatchEvent("DELETED", item))
        queue.put(WatchEvent("ADDED", item))
    kubernetes.put(job())
    eventually(lambda: "ps-job" in states(model))
    assert model.age == 0


def test_secrets_and_commands_of_pods_are_dropped() -> None:
    container = {"name": "main", "env": [{"name": "A", "value": "s3cret"}], "command": ["s3cret"], "args": ["s3cret"]}
    found = {
        "metadata": {"name": "p", "annotations": {"other": "s3cret", "pai-install/job-file": "s3cret"}},
        "spec": {"containers": [container], "volumes": [{"secret": {"secretName": "s3cret"}}]},
    }
    template = {"spec": {"replicatedJobs": [{"template": {"spec": {"template": found}}}]}}
    assert "s3cret" not in json.dumps(reduced_pod(found))
    assert "s3cret" not in json.dumps(reduced("jobsets.jobset.x-k8s.io", {"metadata": {"name": "x"}, **template}))


def test_a_reduced_job_is_judged_as_the_whole_job() -> None:
    pods = [pod("ps-server", 0), pod("worker-v2", 1, "Failed", state={"terminated": {"exitCode": 3}})]
    said = [workload(holds("QuotaReserved", "no quota", "False"))]
    whole = states_of([job()], pods, said)
    small = states_of(
        [reduced("jobsets.jobset.x-k8s.io", job())],
        [reduced("pods", one) for one in pods],
        [reduced("workloads.kueue.x-k8s.io", one) for one in said],
    )
    assert small == whole


def test_what_ended_is_not_read_for_usage() -> None:
    shelf = Shelf("pods", lambda _uid, _item: None)
    done = {**pod("worker-v2", 0), "status": {"phase": "Succeeded"}}
    shelf.put(with_uid(done, "a"))
    shelf.put(with_uid(pod("worker-v2", 1), "b"))
    assert [one["metadata"]["uid"] for one in shelf.unfinished()] == ["b"]
    assert len(list(shelf.objects())) == 2
    # a name of a deleted object may come again with another state
    shelf.drop(with_uid(done, "a"))
    shelf.put(with_uid(pod("worker-v2", 0), "a"))
    assert len(list(shelf.unfinished())) == 2
    works = Shelf("workloads.kueue.x-k8s.io", lambda _uid, _item: None)
    works.put(workload(holds("Finished", "Job finished successfully")))
    assert list(works.unfinished()) == []


def test_what_a_caller_may_see_is_asked_once_a_minute(clients: LiveClients) -> None:
    now = [0.0]
    visibility = Visibility(clients, lambda: now[0])
    spaces = ("vision-1", "nlp")
    for _ in range(3):
        assert visibility.namespaces(ALICE, JOBSET, spaces) == frozenset({"vision-1"})
    assert len(clients.callers) == 1
    clients.roles = {**ROLES, "alice": frozenset()}
    now[0] = FIRST_S - 1
    assert visibility.namespaces(ALICE, JOBSET, spaces) == frozenset({"vision-1"})
    now[0] = FIRST_S + 1
    assert visibility.namespaces(ALICE, JOBSET, spaces) == frozenset(), "the first answer counts for seconds"
    clients.roles = ROLES
    now[0] = FIRST_S + KEPT_S
    assert visibility.namespaces(ALICE, JOBSET, spaces) == frozenset()
    now[0] = FIRST_S + KEPT_S + 2
    assert visibility.namespaces(ALICE, JOBSET, spaces) == frozenset({"vision-1"})
    assert visibility.namespaces(CALLERS["root"], JOBSET, spaces) is None


def test_a_kind_that_the_cluster_lacks_is_empty() -> None:
    pauses: list[float] = []
    shelf = Shelf("tfjobs", lambda _uid, _item: None)

    def own() -> Any:
        raise ApiError("no such kind", reason="NoSuchKind")

    watch = KindWatch(Select(("tfjobs",)), own, shelf, sleep=pauses.append)
    watch.ended.is_set = lambda: len(pauses) == 2  # type: ignore[method-assign]
    watch.run()
    assert watch.ready
    assert watch.broken_since is None
    assert pauses == [60.0, 60.0]


def test_a_cluster_that_does_not_answer_is_asked_less_and_less() -> None:
    pauses: list[float] = []
    shelf = Shelf("pods", lambda _uid, _item: None)

    def own() -> Any:
        raise NoClusterError({"api": "away"})

    watch = KindWatch(Select(("pods",)), own, shelf, sleep=pauses.append, clock=lambda: 5.0)
    watch.ended.is_set = lambda: len(pauses) == 7  # type: ignore[method-assign]
    watch.run()
    assert not watch.ready
    assert watch.broken_since == 5.0
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
