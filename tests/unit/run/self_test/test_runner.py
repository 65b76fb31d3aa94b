"""The self-test on a simulated cluster: a good scheduler passes, one that breaks a promise fails at that promise."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, cast

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.finding import Finding
from pai_install.cluster.client import ApiError, ClusterClient
from pai_install.run.self_test.cleanup import REPLICAS
from pai_install.run.self_test.runner import SelfTestRunner
from pai_install.run.self_test.worker import findings
from pai_install.schedulers.self_test.guarantees import PROMISES
from pai_install.schedulers.self_test.manifests import scenarios
from pai_install.schedulers.self_test.objects import SelfTestContext
from pai_install.schedulers.self_test.scenarios import Bounds
from tests.errors import raises
from tests.unit.run.self_test.simulated import MACHINES, Behaviour, SimulatedCluster

CAST = SelfTestContext("kueue", "run-1", "busybox@sha256:1", MACHINES)
BOUNDS = Bounds(requeue_s=50)


def theatre(cluster: SimulatedCluster) -> SelfTestRunner:
    return SelfTestRunner(cast("ClusterClient", cluster), CAST, cluster.clock, cluster.pause)


def deployment(replicas: int, **notes: str) -> dict[str, Any]:
    metadata = {"name": "kueue-controller-manager", "namespace": "pai-kueue", "annotations": notes}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": replicas}}


def played(cluster: SimulatedCluster, *, disruptive: bool = True) -> dict[str, Finding]:
    """Check -> finding, after a whole test."""
    chosen = [one for one in scenarios("kueue", BOUNDS) if disruptive or not one.disruptive]
    runs = theatre(cluster).play(chosen)
    return {found.id: found for found in findings("kueue", runs)}


def test_a_scheduler_that_keeps_its_promises_passes_all() -> None:
    found = played(SimulatedCluster())
    assert {check: str(one.verdict) for check, one in found.items()} == dict.fromkeys(PROMISES, "PASS")
    assert list(found) == list(PROMISES)
    for check, one in found.items():
        assert one.message.startswith(f"{PROMISES[check].check.title}: ")
        assert one.message.removeprefix(f"{PROMISES[check].check.title}: ")
        looks = r"[1-9]\d* looks in [1-9]\d* s at namespace scheduler-self-test-[a-z]+|the first jobs of 10 namespaces"
        assert re.fullmatch(looks, one.evidence)


@pytest.mark.parametrize(
    ("behaviour", "broken"),
    [
        (Behaviour(gangs=False), {"gang", "deadlock", "oversize"}),
        (Behaviour(quota=False), {"quota", "cores"}),
        (Behaviour(lends=False), {"borrow"}),
        (Behaviour(reclaim="never"), {"reclaim"}),
        (Behaviour(reclaim="pods"), {"reclaim"}),
        (Behaviour(reclaim="late"), {"reclaim"}),
        (Behaviour(returns=False), {"reclaim"}),
        (Behaviour(ranks=False), {"priority"}),
        (Behaviour(topology=False), {"oversize"}),
        (Behaviour(requeue_s=0), {"requeue"}),
        (Behaviour(replaces=False, requeue_s=0), {"restart", "requeue"}),
        (Behaviour(down=False), {"down"}),
    ],
    ids=lambda it: "+".join(sorted(it)) if isinstance(it, set) else "",
)
def test_a_scheduler_that_breaks_a_promise_fails_there(behaviour: Behaviour, broken: set[str]) -> None:
    cluster = SimulatedCluster(behaviour)
    cluster.apply([deployment(1)], force=True)
    found = played(cluster)
    assert found["scheduler-start"].verdict == "PASS"
    failed = {check.removeprefix("scheduler-") for check, one in found.items() if one.verdict == "FAIL"}
    assert broken <= failed, {check: one.message for check, one in found.items()}
    if behaviour.gangs:
        assert failed == broken, {check: one.message for check, one in found.items() if one.verdict == "FAIL"}
    for check in broken:
        one = found[f"scheduler-{check}"]
        assert one.message.startswith(PROMISES[one.id].meaning)
        assert one.remedy


def test_where_nothing_starts_nothing_is_proven() -> None:
    found = played(SimulatedCluster(Behaviour(alive=False)))
    unknown = {check for check, one in found.items() if one.verdict == "UNKNOWN"}
    assert found["scheduler-start"].verdict == "FAIL"
    assert not any(one.verdict == "PASS" for one in found.values())
    assert {"scheduler-gang", "scheduler-quota", "scheduler-reclaim", "scheduler-restart"} <= unknown


def test_everything_is_taken_away_again() -> None:
    cluster = SimulatedCluster()
    played(cluster, disruptive=False)
    assert cluster.objects == {}
    assert cluster.gangs == {}
    assert cluster.devices == {name: {} for name in MACHINES}


def test_what_a_killed_run_left_goes_first() -> None:
    """Its objects, its devices, and the replicas of what it had stopped."""
    cluster = SimulatedCluster()
    cluster.devices["w1"] = {"pai-install/self-test-old": "2", "nvidia.com/gpu": "8"}
    left = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "scheduler-self-test-old", "labels": {"pai-install/probe": "scheduler"}},
    }
    cluster.apply([left, deployment(0, **{REPLICAS: "2"})], force=True)
    cluster.stopped = True
    found = played(cluster, disruptive=False)
    assert found["scheduler-gang"].verdict == "PASS"
    assert "delete namespaces/scheduler-self-test-old" in cluster.log
    assert cluster.devices == {"w1": {"nvidia.com/gpu": "8"}, "w2": {}}
    assert cluster.log.index("scale kueue-controller-manager to 2") == 0


def test_what_does_not_go_is_named_and_no_test_begins() -> None:
    cluster = SimulatedCluster(held="scheduler-self-test-old")
    left = {"name": "scheduler-self-test-old", "labels": {"pai-install/probe": "scheduler"}}
    cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": left}], force=True)
    with raises("self-test-leftovers", "1", "self-test") as caught:
        played(cluster, disruptive=False)
    assert caught.value.details == "namespaces/scheduler-self-test-old"
    assert cluster.gangs == {}


def test_a_scheduler_that_cannot_be_stopped_costs_no_other_verdict() -> None:
    found = played(Immovable(), disruptive=True)
    assert (found["scheduler-down"].verdict, found["scheduler-gang"].verdict) == ("UNKNOWN", "PASS")
    assert found["scheduler-down"].value == "not allowed"


class Immovable(SimulatedCluster):
    """A cluster that lets no one wait for pods."""

    def wait(self, *words: Any) -> bool:
        del words
        raise ApiError("not allowed")


def test_a_namespace_of_someone_else_is_left_alone() -> None:
    cluster = SimulatedCluster()
    theirs = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "scheduler-self-test-gang"}}
    cluster.apply([theirs], force=True)
    with raises("api-request-refused", "scheduler-self-test-gang"):
        played(cluster, disruptive=False)
    assert list(cluster.objects.values()) == [theirs]


def test_the_scheduler_is_stopped_only_where_that_is_asked_for_and_comes_back(snapshot: SnapshotAssertion) -> None:
    calm, rough = SimulatedCluster(), SimulatedCluster()
    for cluster in (calm, rough):
        cluster.apply([deployment(2)], force=True)
    assert played(calm, disruptive=False)["scheduler-down"].verdict == "SKIP"
    assert not [line for line in calm.log if line.startswith("scale")]
    assert played(rough)["scheduler-down"].verdict == "PASS"
    assert [line for line in rough.log if line.startswith("scale")] == snapshot
    (item,) = rough.objects.values()
    assert item["metadata"]["annotations"] == {}


def test_an_interrupted_test_takes_everything_away() -> None:
    cluster = SimulatedCluster()
    pauses = iter(range(20))

    def pause(seconds: float) -> None:
        if next(pauses, None) is None:
            raise KeyboardInterrupt
        cluster.pause(seconds)

    with pytest.raises(KeyboardInterrupt):
        SelfTestRunner(cast("ClusterClient", cluster), CAST, cluster.clock, pause).play(scenarios("kueue", BOUNDS))
    assert cluster.objects == {}
    assert cluster.devices == {name: {} for name in MACHINES}


def test_looks_that_are_not_answered_are_made_again() -> None:
    cluster = SimulatedCluster(silent=8)
    assert played(cluster, disruptive=False)["scheduler-gang"].verdict == "PASS"


def test_a_cluster_that_no_longer_answers_ends_the_test() -> None:
    with raises("api-request-refused"):
        played(SimulatedCluster(silent=1000))


def test_an_object_that_is_refused_leaves_the_other_scenarios_alone() -> None:
    found = played(SimulatedCluster(refuses="JobSet"), disruptive=False)
    refused = {check for check, one in found.items() if one.verdict == "UNKNOWN"}
    assert refused == {"scheduler-gang", "scheduler-restart"}
    assert found["scheduler-gang"].value.startswith("JobSet is refused")
    assert found["scheduler-quota"].verdict == "PASS"


class Strange(SimulatedCluster):
    """A cluster without the kinds of the scheduler."""

    def list(self, *selects: Any) -> Any:
        if any("clusterqueues.kueue.x-k8s.io" in select.kinds for select in selects):
            raise ApiError('the server doesn\'t have a resource type "clusterqueues"')
        return super().list(*selects)


def test_a_cluster_without_the_scheduler_is_told() -> None:
    with raises("scheduler-kinds-missing") as caught:
        played(Strange())
    assert "pai-install apply" in caught.value.remedy


@pytest.mark.parametrize("waits", [True, False])
def test_short_test_begins_to_remove_its_objects_and_does_not_wait_for_the_end(
    waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[bool] = []

    def gone(*_words: Any) -> tuple[str, ...]:
        waited.append(True)
        return ()

    monkeypatch.setattr("pai_install.run.self_test.runner.gone", gone)
    cluster = SimulatedCluster()
    chosen = [one for one in scenarios("kueue", BOUNDS) if one.name == "quota"]
    runs = replace(theatre(cluster), waits=waits).play(chosen)
    assert findings("kueue", runs)
    assert len(waited) == (2 if waits else 1), "what an earlier test left is always waited for"
    assert not any("scheduler-self-test" in ref.name for ref in cluster.objects)
