"""Typed reading of a whole cluster."""

from __future__ import annotations

from pai_install.cluster import read
from pai_install.cluster.client import ClusterClient, EvictionOutcome, Patch, Select
from pai_install.kube.model import Ref

from .fake import FakeCluster
from .recordings import items


def cluster() -> FakeCluster:
    """The recorded cluster."""
    return FakeCluster.of(*items("nodes"), *items("pods"), *items("workloads"), *items("budgets"))


def test_each_reading_is_one_request() -> None:
    client = cluster()
    assert [node.name for node in read.nodes(client)] == ["master", "worker1", "worker2", "worker3", "worker4"]
    assert {pod.node for pod in read.pods(client, node="worker1")} == {"worker1"}
    assert {pod.namespace for pod in read.pods(client, "kube-system")} == {"kube-system"}
    assert {found.kind for found in read.workloads(client)} == {"Deployment", "DaemonSet", "StatefulSet", "Job"}
    assert len(client.calls) == 4


def test_occupancy_says_what_is_on_a_node_and_what_protects_it() -> None:
    client = cluster()
    found = read.occupancy(client)
    assert len(client.calls) == 1
    names = {pod.name for pod in found.pods_on("worker1")}
    assert {"train-0", "lonely", "kube-flannel-ds-x2x9k"} <= names
    web = next(pod for pod in found.pods if pod.name == "leaving")
    assert [budget.name for budget in found.budgets if budget.covers(web.namespace, web.labels)] == ["web"]
    assert found.node("worker2") is not None
    assert found.node("nobody") is None


def test_the_cluster_in_memory_behaves_like_one() -> None:
    client = cluster()
    door: ClusterClient = client
    door.patch([Patch(Ref("node", "worker1"), {"spec": {"unschedulable": True}})])
    assert read.occupancy(door).node("worker1") == next(n for n in read.nodes(door) if n.name == "worker1")
    assert next(n for n in read.nodes(door) if n.name == "worker1").cordoned
    client.protected.add("train-0")
    outcomes = door.evict([Ref("pod", name, "default") for name in ("train-0", "lonely", "nobody")])
    assert [entry.outcome for entry in outcomes] == [
        EvictionOutcome.BLOCKED,
        EvictionOutcome.EVICTED,
        EvictionOutcome.GONE,
    ]
    door.delete_selected(Select(("pods",), "default"))
    assert read.pods(door, "default") == ()
