"""GPUs of nodes, findings, and services from objects of the cluster."""

from __future__ import annotations

from typing import Any

import pytest

from pai_install.app.node_health import node_findings, nodes_with_gpus, services_of
from pai_install.checks.verdict import Action, Verdict
from pai_install.kube.labels import CORDONED_BY_HEALTH
from tests.unit.jobs.sites import research

GPU = "nvidia.com/gpu"


def node(name: str, gpus: int = 8, version: str = "v1.36.3", **spec: Any) -> dict[str, Any]:
    status = {
        "allocatable": {GPU: str(gpus), "cpu": "96"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "nodeInfo": {"kubeletVersion": version},
    }
    return {"metadata": {"name": name, "labels": {}}, "spec": spec, "status": status}


def found(*nodes: dict[str, Any]) -> dict[str, tuple[str, Verdict]]:
    """Findings of workers that are nodes."""
    names = {one["metadata"]["name"] for one in nodes}
    findings = node_findings(research().require_scheduling(), nodes)
    return {one.subject: (one.id, one.verdict) for one in findings if one.subject in names}


def test_a_healthy_node_has_no_finding() -> None:
    assert found(node("g1"), node("g2")) == {}


def test_nodes_that_are_not_as_they_should_be() -> None:
    unready = node("g2")
    unready["status"]["conditions"][0]["status"] = "Unknown"
    lost = node("g3", unschedulable=True)
    lost["metadata"]["labels"][CORDONED_BY_HEALTH] = "gpu-lost"
    assert found(node("g1", gpus=7), unready, lost, node("t1", 4, "v1.35.9")) == {
        "g1": ("gpu-count", Verdict.FAIL),
        "g2": ("node-ready", Verdict.FAIL),
        "g3": ("gpu-lost", Verdict.FAIL),
        "t1": ("node-ready", Verdict.FAIL),
    }


def test_the_worst_comes_first_with_its_action() -> None:
    lost = node("g3", unschedulable=True)
    lost["metadata"]["labels"][CORDONED_BY_HEALTH] = "gpu-lost"
    findings = node_findings(research().require_scheduling(), [node("g1", unschedulable=True), lost])
    assert findings[0].subject == "g3"
    assert findings[0].action.rank > Action.CONFIG.rank
    assert findings[0].remedy
    assert [one.subject for one in findings if one.verdict is Verdict.WARN] == ["g1"]


def test_a_label_that_names_no_check_is_told_as_it_is() -> None:
    odd = node("g1", unschedulable=True)
    odd["metadata"]["labels"][CORDONED_BY_HEALTH] = "no-check"
    (finding,) = [one for one in node_findings(research().require_scheduling(), [odd]) if one.subject == "g1"]
    assert (finding.id, finding.action) == ("no-check", Action.NONE)


@pytest.mark.parametrize("broken", [{}, {"metadata": None}, {"metadata": {"name": "g1"}, "spec": [], "status": "x"}])
def test_damaged_objects_end_nothing(broken: dict[str, Any]) -> None:
    scheduling = research().require_scheduling()
    assert node_findings(scheduling, [broken])
    assert nodes_with_gpus(scheduling, [broken], [broken], ())
    assert services_of([broken])


def test_gpus_of_pods_that_are_no_jobs() -> None:
    pod = {
        "metadata": {"name": "p"},
        "spec": {"nodeName": "g1", "containers": [{"resources": {"limits": {GPU: "3"}}}]},
        "status": {"phase": "Running"},
    }
    nodes = {one.name: one for one in nodes_with_gpus(research().require_scheduling(), [node("g1")], [pod], ())}
    assert (nodes["g1"].count("other"), nodes["g1"].count("free"), nodes["g1"].total) == (3, 5, 8)
    assert (nodes["g2"].count("sick"), nodes["c1"].total) == (8, 0)
