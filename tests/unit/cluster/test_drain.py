"""Which pods a drain moves, which it leaves, and what holds it up."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.cluster.drain import blocking, moves, to_evict, unmanaged
from pai_install.kube.model import Pod
from pai_install.kube.workloads import PodDisruptionBudget
from pai_install.plan.model import ClusterCall
from pai_install.run import cluster_calls
from tests.errors import raises
from tests.unit.cluster.fake import FakeCluster


def pod(
    name: str, owner: str = "ReplicaSet", *, node: str = "one", phase: str = "Running", **more: Any
) -> dict[str, Any]:
    """A pod as the API gives it; owner "" for none. more: annotations, labels, gpus."""
    owners = [{"kind": owner, "name": f"{owner.lower()}-a", "controller": True}] if owner else []
    resources = {"requests": {"nvidia.com/gpu": str(more["gpus"])}} if "gpus" in more else {}
    return {
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "ml", "ownerReferences": owners,
            "annotations": more.get("annotations", {}), "labels": more.get("labels", {}),
        },
        "spec": {"nodeName": node, "containers": [{"resources": resources}], "volumes": more.get("volumes", [])},
        "status": {"phase": phase},
    }  # fmt: skip


def budget(allowed: int | None) -> dict[str, Any]:
    """A budget over pods with label app=web."""
    status = {} if allowed is None else {"disruptionsAllowed": allowed}
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    return {
        "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "ml"}, "spec": spec, "status": status,
    }  # fmt: skip


def test_pods_of_daemon_sets_of_the_kubelet_and_finished_ones_stay() -> None:
    pods = [
        pod("web"),
        pod("agent", "DaemonSet"),
        pod("etcd", "Node", annotations={"kubernetes.io/config.mirror": "x"}),
        pod("done", "Job", phase="Succeeded"),
        pod("train", "Job"),
        pod("alone", ""),
    ]
    going = to_evict(map(Pod.parse, pods))
    assert [one.name for one in going] == ["web", "train", "alone"]
    assert [one.name for one in going if moves(one)] == ["web"]
    assert [one.name for one in unmanaged(going)] == ["alone"]


@pytest.mark.parametrize(("allowed", "blocks"), [(1, False), (0, True), (None, True)])
def test_budget_blocks_where_it_lets_none_go_or_does_not_say(allowed: int | None, blocks: bool) -> None:
    budgets = (PodDisruptionBudget.parse(budget(allowed)),)
    assert bool(blocking(Pod.parse(pod("web", labels={"app": "web"})), budgets)) is blocks
    assert blocking(Pod.parse(pod("other")), budgets) == ()


def drain(cluster: FakeCluster, *, force: bool = False, timeout_s: float = 0) -> str:
    how = {"node": "one", "grace_s": None, "timeout_s": timeout_s, "force": force}
    return cluster_calls.make_call(cluster, ClusterCall("one", "Evict the pods", "drain", how))


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_calls, "_POLL_S", 0)


def test_drain_evicts_what_must_go_and_leaves_other_nodes_alone(snapshot: SnapshotAssertion) -> None:
    cluster = FakeCluster.of(pod("web"), pod("train", "Job"), pod("agent", "DaemonSet"), pod("far", node="two"))
    assert drain(cluster, timeout_s=60) == snapshot
    assert {ref.name for ref in cluster.objects} == {"agent", "far"}
    assert drain(cluster) == snapshot


def test_protected_pod_is_named_with_the_servers_words_when_the_time_is_over(snapshot: SnapshotAssertion) -> None:
    cluster = FakeCluster.of(pod("web"), pod("train", "Job"))
    cluster.protected.add("web")
    with raises("pods-not-drained", "2") as caught:
        drain(cluster)
    assert caught.value.details == snapshot
    assert {ref.name for ref in cluster.objects} == {"web"}


def test_force_removes_protected_and_unmanaged_pods_and_nothing_else_does(snapshot: SnapshotAssertion) -> None:
    cluster = FakeCluster.of(pod("web"), pod("alone", ""))
    cluster.protected.add("web")
    with raises("pods-not-drained") as caught:
        drain(cluster, timeout_s=60)
    assert caught.value.details == snapshot
    assert not any(verb in ("delete", "evict") for verb, _ in cluster.calls)
    assert drain(cluster, force=True, timeout_s=60) == snapshot
    assert cluster.objects == {}
