"""Objects of the API as values: what is missing is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from pai_install.kube.model import Node, Owner, Pod, Ref
from pai_install.kube.objects import quantity
from pai_install.kube.workloads import PodDisruptionBudget, Workload
from tests.unit.cluster.recordings import items

NODES = {node.name: node for node in map(Node.parse, items("nodes"))}
PODS = {pod.name: pod for pod in map(Pod.parse, items("pods"))}
WORKLOADS = {(found.kind, found.name): found for found in map(Workload.parse, items("workloads"))}
BUDGETS = {budget.name: budget for budget in map(PodDisruptionBudget.parse, items("budgets"))}


def test_a_node_is_read_whole() -> None:
    node = NODES["worker1"]
    assert (node.ready, node.cordoned, node.pressure) == (True, False, ("DiskPressure",))
    assert (node.version, node.runtime, node.address) == ("1.36.3", "containerd 2.3.1", "10.0.0.2")
    assert node.machine_id == "b" * 32
    assert [str(taint) for taint in node.taints] == [
        "dedicated=training:NoSchedule",
        "node.kubernetes.io/disk-pressure:NoSchedule",
    ]
    assert node.allocatable["nvidia.com/gpu"] == 8
    assert node.allocatable["cpu"] == 31.5
    assert node.capacity["memory"] == 528131408 * 1024
    assert node.labels["kubernetes.io/hostname"] == "worker1"


@pytest.mark.parametrize(
    ("name", "ready", "cordoned", "words"),
    [
        ("master", True, False, "posting ready status"),
        ("worker2", False, True, "stopped posting"),
        ("worker3", False, False, "cni plugin not initialized"),
        ("worker4", None, False, ""),
    ],
)
def test_a_node_that_does_not_say_ready_is_not_ready(
    name: str, ready: bool | None, cordoned: bool | None, words: str
) -> None:
    node = NODES[name]
    assert (node.ready, node.cordoned) == (ready, cordoned)
    assert words in node.why


@pytest.mark.parametrize("broken", [{}, {"metadata": None, "spec": [], "status": "x"}, {"status": {"conditions": {}}}])
def test_what_is_missing_or_of_another_form_is_unknown(broken: dict[str, Any]) -> None:
    node, pod = Node.parse(broken), Pod.parse(broken)
    assert (node.ready, node.cordoned, node.version, node.capacity) == (None, None, "", {})
    assert (pod.ready, pod.well, pod.phase, pod.owner) == (None, False, "", None)
    assert Workload.parse(broken).complete is None
    assert PodDisruptionBudget.parse(broken).allowed is None


@pytest.mark.parametrize("field", ["conditions", "nodeInfo", "addresses", "capacity", "allocatable"])
def test_each_part_of_a_status_may_be_missing(field: str) -> None:
    raw = items("nodes")[0]
    del raw["status"][field]
    node = Node.parse(raw)
    assert node.name == "master"
    assert node != NODES["master"]
    assert node.ready is (None if field == "conditions" else True)


def test_a_pod_is_read_whole() -> None:
    pod = PODS["train-0"]
    assert (pod.ref, pod.node, pod.well) == (Ref("pod", "train-0", "default"), "worker1", True)
    assert (pod.owner, pod.local_storage, pod.mirror) == (Owner("Job", "train"), True, False)
    assert pod.requests == {"nvidia.com/gpu": 8, "memory": 32 * 2**30, "cpu": 0.75}


def test_pods_that_are_special_are_known() -> None:
    assert PODS["etcd-master"].mirror
    assert PODS["kube-flannel-ds-x2x9k"].owner == Owner("DaemonSet", "kube-flannel-ds")
    assert PODS["lonely"].owner is None
    assert PODS["leaving"].terminating
    assert (PODS["done"].finished, PODS["done"].well) == (True, True)


def test_a_pod_says_why_it_does_not_run() -> None:
    assert PODS["web-7c4d-abcde"].why == 'ImagePullBackOff Back-off pulling image "nope"'
    assert (PODS["web-7c4d-abcde"].ready, PODS["web-7c4d-abcde"].restarts) == (False, 3)
    assert "Insufficient nvidia.com/gpu" in PODS["queued"].why
    assert (PODS["queued"].node, PODS["queued"].ready, PODS["queued"].well) == ("", None, False)


@pytest.mark.parametrize(
    ("kind", "name", "complete", "failed"),
    [
        ("Deployment", "coredns", True, False),
        ("Deployment", "stuck", False, True),
        ("Deployment", "unseen", False, False),
        ("Deployment", "newborn", False, False),
        ("DaemonSet", "kube-flannel-ds", True, False),
        ("StatefulSet", "store", False, False),
        ("Job", "train", False, False),
        ("Job", "done", True, False),
        ("Job", "broken", False, True),
    ],
)
def test_a_workload_is_complete_when_all_its_pods_are(
    kind: str, name: str, complete: bool | None, failed: bool
) -> None:
    workload = WORKLOADS[kind, name]
    assert (workload.complete, workload.failed) == (complete, failed)


def test_a_budget_covers_the_pods_that_its_selector_names() -> None:
    assert BUDGETS["web"].allowed == 0
    assert BUDGETS["web"].covers("default", PODS["leaving"].labels)
    assert not BUDGETS["web"].covers("other", PODS["leaving"].labels)
    assert BUDGETS["jobs"].covers("default", PODS["train-0"].labels)
    assert not BUDGETS["jobs"].covers("default", {"job-name": "x", "tier": "test"})
    assert BUDGETS["fresh"].allowed is None


def test_a_rule_that_is_not_understood_protects() -> None:
    raw = items("budgets")[0]
    raw["spec"]["selector"] = {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["w*"]}]}
    assert PodDisruptionBudget.parse(raw).covers("default", {"app": "web"})


@pytest.mark.parametrize(
    ("word", "amount"),
    [
        ("8", 8),
        ("500m", 0.5),
        ("1.5Gi", 1.5 * 2**30),
        ("1e3", 1000),
        ("2k", 2000),
        ("", None),
        ("many", None),
        (None, None),
    ],
)
def test_quantities(word: object, amount: float | None) -> None:
    assert quantity(word) == amount


def test_a_node_that_reports_thousands_of_conditions_fills_no_report() -> None:
    found = [{"type": f"Forged{n}" * 50, "status": "True"} for n in range(5000)]
    node = Node.parse({"metadata": {"name": "liar"}, "status": {"conditions": found}})
    assert len(", ".join(node.pressure)) < 700
