"""Operations on nodes: what is planned for which node."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode
from pai_install.kube.labels import CORDONED_BY_HEALTH, CORDONED_BY_REBOOT, CORDONED_BY_UPGRADE
from pai_install.operations.node_cordon import NodeCordon
from pai_install.operations.node_drain import NodeDrain
from pai_install.operations.node_uncordon import NodeUncordon
from pai_install.operations.operation import Operation
from pai_install.plan.model import ClusterCalls, Inventory, Plan
from pai_install.plan.observation import Observation
from pai_install.site import Site
from tests.errors import raises
from tests.unit.cluster.fake import FakeCluster
from tests.unit.cluster.test_drain import budget, pod


def node(name: str, *, cordoned: bool = False, labels: dict[str, str] | None = None) -> dict[str, Any]:
    """A node as the API gives it."""
    spec = {"unschedulable": True} if cordoned else {}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def planned(operation: Operation, site: Site, cluster: FakeCluster) -> Plan:
    """What the operation plans for the cluster as it is."""
    answers = cluster.list(*operation.queries)
    return operation.plan(site, Observation(Inventory({}, {}, {}), {}, answers=answers))


CLUSTER = FakeCluster.of(node("gpu-07"), node("gpu-08", cordoned=True), node("master"))


def test_cordon_is_planned_for_nodes_that_take_pods_and_can_be_taken_back(
    site: Site, snapshot: SnapshotAssertion
) -> None:
    (step,) = planned(NodeCordon(nodes=("gpu-08", "gpu-07", "gpu-07")), site, CLUSTER).steps
    assert [(host.host, host.reasons, host.effects) for host in step.hosts] == snapshot
    assert isinstance(step.action, ClusterCalls)
    assert isinstance(step.undo, ClusterCalls)
    assert step.action.calls[0].arguments["body"]["spec"] == {"unschedulable": True}
    assert step.undo.calls[0].arguments["body"]["spec"] == {"unschedulable": None}
    assert step.undo_command(step.names) == snapshot
    assert step.action.calls[0].arguments["body"]["metadata"]["labels"] == {
        CORDONED_BY_HEALTH: None,
        CORDONED_BY_UPGRADE: None,
        CORDONED_BY_REBOOT: None,
    }


def test_cordoned_nodes_are_nothing_to_do(site: Site) -> None:
    plan = planned(NodeCordon(nodes=("gpu-08",)), site, CLUSTER)
    assert (plan.empty, plan.nothing) == (True, "gpu-08: out of scheduling already")


def test_node_that_health_took_out_becomes_a_persons(site: Site, snapshot: SnapshotAssertion) -> None:
    sick = FakeCluster.of(node("gpu-07", cordoned=True, labels={CORDONED_BY_HEALTH: "gpu-lost"}))
    (step,) = planned(NodeCordon(nodes=("gpu-07",)), site, sick).steps
    assert step.hosts[0].effects == snapshot


def test_unknown_node_is_refused_and_the_likely_one_named(site: Site, snapshot: SnapshotAssertion) -> None:
    with raises("unknown-node", "gpu-7") as caught:
        planned(NodeCordon(nodes=("gpu-7",)), site, CLUSTER)
    assert caught.value.remedy == snapshot
    assert caught.value.exit_code is ExitCode.USAGE
    with pytest.raises(ValidationError):
        NodeCordon(nodes=())


def test_uncordon_is_planned_for_nodes_that_are_out_and_names_healths_reason(
    site: Site, snapshot: SnapshotAssertion
) -> None:
    cluster = FakeCluster.of(
        node("gpu-07", cordoned=True, labels={CORDONED_BY_HEALTH: "gpu-lost"}),
        node("gpu-08", cordoned=True),
        node("gpu-09"),
    )
    (step,) = planned(NodeUncordon(nodes=("gpu-07", "gpu-08", "gpu-09")), site, cluster).steps
    assert step.names == ("gpu-07", "gpu-08")
    assert step.hosts[0].impact == snapshot
    assert isinstance(step.action, ClusterCalls)
    assert step.action.calls[0].arguments["body"]["spec"] == {"unschedulable": None}
    plan = planned(NodeUncordon(nodes=("gpu-09",)), site, cluster)
    assert (plan.empty, plan.nothing) == (True, "gpu-09: in scheduling already")


def drained(site: Site, *objects: Any, **how: Any) -> Plan:
    return planned(NodeDrain(nodes=("gpu-07",), **how), site, FakeCluster.of(*objects))


def test_drain_says_what_stops_and_what_starts_elsewhere(site: Site, snapshot: SnapshotAssertion) -> None:
    plan = drained(
        site,
        node("gpu-07"),
        pod("front", node="gpu-07"),
        pod("train-0", "Job", node="gpu-07", gpus=8),
        pod("train-1", "Job", node="gpu-07", gpus=8, volumes=[{"emptyDir": {}}]),
        pod("agent", "DaemonSet", node="gpu-07"),
        pod("far", node="gpu-08"),
    )
    assert [step.name for step in plan.steps] == ["cordon", "drain"]
    (host,) = plan.steps[1].hosts
    assert host.reasons == snapshot
    assert host.effects == snapshot
    assert host.impact == snapshot
    assert plan.steps[1].needs == ("cordon",)


def test_drain_names_the_budget_that_holds_a_pod(site: Site, snapshot: SnapshotAssertion) -> None:
    objects = (node("gpu-07"), pod("front", node="gpu-07", labels={"app": "web"}), budget(0))
    (host,) = drained(site, *objects, timeout=60).steps[1].hosts
    assert host.impact == snapshot
    (host,) = drained(site, *objects, force=True).steps[1].hosts
    assert host.impact[0].endswith("--force removes it anyway")


def test_drain_refuses_pods_that_nothing_starts_again(site: Site, snapshot: SnapshotAssertion) -> None:
    objects = (node("gpu-07"), pod("alone", "", node="gpu-07"))
    with raises("pods-without-controller", "1") as caught:
        drained(site, *objects)
    assert caught.value.details == snapshot
    assert caught.value.exit_code is ExitCode.PREFLIGHT_FAILED
    (host,) = drained(site, *objects, force=True).steps[1].hosts
    assert host.effects == snapshot


def test_empty_cordoned_node_is_nothing_to_drain(site: Site) -> None:
    plan = drained(site, node("gpu-07", cordoned=True), pod("agent", "DaemonSet", node="gpu-07"))
    assert (plan.empty, plan.nothing) == (True, "gpu-07: out of scheduling, and nothing to move")
    with raises("unknown-node", "gpu-07"):
        drained(site, node("gpu-08"))
