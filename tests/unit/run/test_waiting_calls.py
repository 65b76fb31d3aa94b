"""Calls that wait say for what: drains, jobs, nodes that come back."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.cluster.client import NO_ANSWER, ApiError, NoClusterError
from pai_install.plan.model import ClusterCall, ClusterCalls
from pai_install.report.console import LineProgress
from pai_install.run.cluster_calls import make_call
from pai_install.run.executor import Means, execute
from tests.errors import raises
from tests.unit.cluster.fake import FakeCluster
from tests.unit.cluster.test_drain import budget, pod
from tests.unit.operations.test_node_remove import node


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_install.run.cluster_calls._POLL_S", 0)
    monkeypatch.setattr("pai_install.cluster.retries._PAUSE_S", 0)


def call(cluster: FakeCluster, verb: str, **arguments: Any) -> tuple[str, list[str]]:
    """What a call did, and what it said while it waited."""
    said: list[str] = []
    return make_call(cluster, ClusterCall("one", verb, verb, {"node": "one", **arguments}), said.append), said


def drain(cluster: FakeCluster, **how: Any) -> tuple[str, list[str]]:
    return call(cluster, "drain", **{"grace_s": None, "timeout_s": 0, "force": False, **how})


def test_a_drain_names_the_budget_that_holds_it(snapshot: SnapshotAssertion) -> None:
    cluster = FakeCluster.of(node("one"), pod("front", labels={"app": "web"}), budget(0))
    cluster.protected.add("front")
    with raises("pods-not-drained") as caught:
        drain(cluster)
    assert caught.value.details == snapshot
    said: list[str] = []

    def freed(line: str) -> None:
        said.append(line)
        cluster.protected.clear()

    done = make_call(
        cluster,
        ClusterCall("one", "x", "drain", {"node": "one", "grace_s": None, "timeout_s": 60, "force": False}),
        freed,
    )
    assert done == snapshot
    assert said[0].startswith("one: 1 pod left; pod/front in ml: held by PodDisruptionBudget ml/web")


def test_pods_that_nothing_starts_again_go_where_that_was_said(snapshot: SnapshotAssertion) -> None:
    cluster = FakeCluster.of(node("one"), pod("alone", ""))
    with raises("pods-not-drained", "1"):
        drain(cluster)
    assert drain(cluster, unmanaged=True, timeout_s=60)[0] == snapshot


def test_jobs_are_awaited_and_named_once(snapshot: SnapshotAssertion) -> None:
    cluster = FakeCluster.of(node("one"), pod("train", "Job"), pod("front"))
    said: list[str] = []

    def listed(line: str) -> None:
        said.append(line)
        for ref in [ref for ref in cluster.objects if ref.name == "train"]:
            del cluster.objects[ref]

    words = {"node": "one", "timeout_s": 60}
    assert make_call(cluster, ClusterCall("one", "x", "await-jobs", words), listed) == snapshot
    assert said == snapshot


def test_a_log_says_what_a_step_waits_for(kit: Any) -> None:
    cluster, log = FakeCluster.of(node("one"), pod("front", labels={"app": "web"}), budget(0)), io.StringIO()
    cluster.protected.add("front")
    words = {"node": "one", "grace_s": None, "timeout_s": 0.01, "force": False}
    step = replace(kit.phase("drain", "one"), action=ClusterCalls((ClusterCall("one", "Drain", "drain", words),)))
    execute(kit.plan(step), Means(kit.engine({}), cluster), [LineProgress(log)])
    begin, waits, *_ = log.getvalue().splitlines()
    assert begin == "[1/1] Drain (1 machine)"
    assert waits.startswith("      one: 1 pod left; pod/front in ml: held by PodDisruptionBudget ml/web")


def test_jobs_that_do_not_end_are_named() -> None:
    cluster = FakeCluster.of(node("one"), pod("train", "Job"))
    with raises("jobs-not-ended", "ml/train") as caught:
        call(cluster, "await-jobs", timeout_s=0)
    assert "node uncordon" in caught.value.remedy


def test_a_node_is_back_when_it_is_ready_after_another_boot() -> None:
    cluster = FakeCluster.of(node("one"))
    assert call(cluster, "await-node", timeout_s=0)[0] == "one is ready"
    with raises("node-not-ready"):
        call(cluster, "await-node", timeout_s=0, boot="boot-1")
    assert call(cluster, "await-node", timeout_s=0, boot="boot-0")[0] == "one is ready"
    with raises("node-not-ready"):
        call(FakeCluster(), "await-node", timeout_s=0)


def test_an_upgraded_node_is_back_when_its_kubelet_and_its_own_pods_are(snapshot: SnapshotAssertion) -> None:
    """Pods that a controller starts anywhere are not waited for: they may come back elsewhere."""
    item = node("one")
    item["status"]["nodeInfo"]["kubeletVersion"] = "v1.35.4"
    cluster = FakeCluster.of(item, pod("proxy", "DaemonSet", phase="Pending"), pod("front", phase="Pending"))
    with raises("node-not-ready", "1.35.4") as caught:
        call(cluster, "await-node", timeout_s=0, version="1.36.3")
    assert caught.value.details == snapshot
    assert "front" not in caught.value.details
    item["status"]["nodeInfo"]["kubeletVersion"] = "v1.36.3"
    cluster = FakeCluster.of(item, pod("front", phase="Pending"))
    assert call(cluster, "await-node", timeout_s=0, version="1.36.3") == ("one is ready", [])


@pytest.mark.parametrize("reason", [NO_ANSWER, "Timeout"])
def test_a_change_is_made_again_where_an_api_server_went_away(monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    """As one does whose control plane leaves: the proxy finds another one seconds later."""
    cluster = FakeCluster.of(node("one"))
    away = [ApiError("kubectl apply failed on one", reason=reason)] * 2
    real = cluster.apply

    def apply(*given: Any, **how: Any) -> Any:
        if away:
            raise away.pop()
        return real(*given, **how)

    monkeypatch.setattr(cluster, "apply", apply)
    entry = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}}
    assert call(cluster, "apply", objects=[entry], force=True)[0] == "applied 1 object"
    assert not away


@pytest.mark.parametrize("verb", ["drain", "await-jobs", "await-node"])
@pytest.mark.parametrize("away", [ApiError("x", reason=NO_ANSWER), NoClusterError({"one": "connection refused"})])
def test_one_that_waits_goes_on_waiting_where_the_api_server_restarts(
    monkeypatch: pytest.MonkeyPatch, verb: str, away: Exception
) -> None:
    """As it does with the runtime and the kubelet of the only control plane."""
    cluster = FakeCluster.of(node("one"), pod("front"))
    failures, real = [away] * 2, cluster.list

    def answer(*given: Any, **how: Any) -> Any:
        if failures:
            raise failures.pop()
        return real(*given, **how)

    monkeypatch.setattr(cluster, "list", answer)
    call(cluster, verb, grace_s=None, timeout_s=60, force=False)
    assert not failures


def test_one_that_waits_does_not_wait_for_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster.of(node("one"))
    refused = ApiError("x", reason="Forbidden")
    monkeypatch.setattr(cluster, "list", lambda *_given, **_how: (_ for _ in ()).throw(refused))
    with raises("api-request-refused", kind=ApiError):
        call(cluster, "await-node", timeout_s=60)


def test_a_change_that_is_refused_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, made = FakeCluster.of(node("one")), list[str]()

    def apply(*_given: Any, **_how: Any) -> Any:
        made.append("once")
        raise ApiError("kubectl apply failed on one", reason="Forbidden")

    monkeypatch.setattr(cluster, "apply", apply)
    with raises("api-request-refused", kind=ApiError):
        call(cluster, "apply", objects=[], force=True)
    assert made == ["once"]
