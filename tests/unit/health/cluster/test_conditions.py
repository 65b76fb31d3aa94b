"""How the cluster is, as its machines tell it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pai_install.checks.finding import worst
from pai_install.checks.verdict import Verdict
from pai_install.health.cluster.conditions import cluster_findings, versions
from pai_install.plan.observed import Observed
from pai_install.site import Site


def node(name: str, **words: Any) -> dict[str, Any]:
    """A healthy node, changed by `words`."""
    return {"name": name, "ready": True, "pressure": [], "version": "1.36.3", "cordoned": False, **words}


def pod(**words: Any) -> dict[str, Any]:
    """A healthy pod, changed by `words`."""
    healthy = {
        "name": "dns",
        "namespace": "kube-system",
        "node": "master",
        "phase": "Running",
        "ready": True,
        "restarts": 0,
        "why": "",
    }
    return {**healthy, **words}


def seen(site: Site, nodes: list[dict[str, Any]], pods: list[dict[str, Any]], error: str = "") -> dict[str, Observed]:
    """All machines, the control plane with its view of the cluster."""
    found = {machine.hostname: Observed(hostname=machine.hostname) for machine in site.present_machines}
    found["master"] = Observed(hostname="master", cluster={"error": error, "nodes": nodes, "pods": pods})
    return found


NODES = [node("master"), node("worker1"), node("worker2")]


def test_all_well(site: Site) -> None:
    findings = cluster_findings(site, "1.36.3", seen(site, NODES, [pod()]))
    assert worst(findings) is Verdict.PASS
    assert {finding.subject for finding in findings} == {"master", "worker1", "worker2", "cluster"}


@pytest.mark.parametrize(
    ("nodes", "pods", "subject", "words"),
    [
        ([*NODES[:2], node("worker2", ready=False)], [pod()], "worker2", "not Ready"),
        (NODES[:2], [pod()], "worker2", "not a node of the cluster"),
        ([*NODES[:2], node("worker2", version="1.35.4")], [pod()], "worker2", "the planned version"),
        (NODES, [pod(ready=False, why="ImagePullBackOff")], "master", "kube-system/dns does not run"),
    ],
)
def test_what_is_wrong_fails_by_name(
    site: Site, nodes: list[dict[str, Any]], pods: list[dict[str, Any]], subject: str, words: str
) -> None:
    failed = [entry for entry in cluster_findings(site, "1.36.3", seen(site, nodes, pods)) if entry.verdict == "FAIL"]
    assert [entry.subject for entry in failed] == [subject]
    assert words in failed[0].message


def test_cordoned_node_is_a_warning(site: Site) -> None:
    nodes = [*NODES[:2], node("worker2", cordoned=True)]
    assert worst(cluster_findings(site, "1.36.3", seen(site, nodes, [pod()]))) is Verdict.WARN


def test_a_node_under_pressure_is_a_warning(site: Site) -> None:
    nodes = [*NODES[:2], node("worker2", pressure=["DiskPressure"])]
    findings = cluster_findings(site, "1.36.3", seen(site, nodes, [pod()]))
    warnings = [(entry.subject, entry.value) for entry in findings if entry.verdict == "WARN"]
    assert warnings == [("worker2", "DiskPressure")]


def test_versions_of_machines_and_their_nodes(site: Site) -> None:
    observed = seen(site, [node("master", runtime="containerd 2.3.7")], [])
    observed["worker1"] = Observed(hostname="worker1", kernel="6.18", os={"id": "debian", "version_id": "13"})
    found = versions(site, observed)
    assert found["master"] == {"kubernetes": "1.36.3", "container_runtime": "containerd 2.3.7"}
    assert found["worker1"] == {"os": "debian 13", "kernel": "6.18"}
    assert found["worker2"] == {}


def test_silent_api_is_a_failure(site: Site) -> None:
    findings = cluster_findings(site, "1.36.3", seen(site, [], [], error="connection refused"))
    assert [(entry.id, entry.verdict, entry.value) for entry in findings] == [("api", "FAIL", "connection refused")]


def test_machine_that_did_not_answer_is_not_judged_twice(site: Site) -> None:
    view = seen(site, [*NODES[:2], node("worker2", ready=False)], [pod(), pod(node="worker2", ready=False)])
    del view["worker2"]
    assert worst(cluster_findings(site, "1.36.3", view)) is Verdict.PASS


def test_nothing_is_said_before_there_is_a_cluster(site: Site) -> None:
    bare = {machine.hostname: Observed(hostname=machine.hostname) for machine in site.present_machines}
    assert cluster_findings(site, "1.36.3", bare) == ()


def test_one_control_plane_that_reaches_the_api_is_enough(make_site: Callable[..., Site]) -> None:
    site = make_site(
        """
machine-sku:
  cpu: {mem: 8Gi, cpu: {vcore: 4}}
machine-list:
  - {hostname: master, hostip: 10.0.0.1, machine-type: cpu, pai-master: "true"}
  - {hostname: second, hostip: 10.0.0.2, machine-type: cpu, pai-master: "true"}
  - {hostname: third, hostip: 10.0.0.3, machine-type: cpu, pai-master: "true", pai-worker: "true"}
"""
    )
    observed = seen(site, [], [], error="connection refused")
    observed["third"] = Observed(
        hostname="third", cluster={"error": "", "nodes": [node(name) for name in observed], "pods": [pod()]}
    )
    assert worst(cluster_findings(site, "1.36.3", observed)) is Verdict.PASS
    del observed["third"]
    assert [finding.id for finding in cluster_findings(site, "1.36.3", observed)] == ["api"]


def test_a_cluster_without_pods_of_the_system_is_not_well(site: Site) -> None:
    findings = cluster_findings(site, "1.36.3", seen(site, NODES, []))
    assert [(entry.id, entry.verdict) for entry in findings if entry.verdict != "PASS"] == [("system-pods", "FAIL")]


@pytest.mark.parametrize("left_out", ["ready", "version", "cordoned"])
def test_what_a_node_does_not_say_is_not_good(site: Site, left_out: str) -> None:
    silent = {key: value for key, value in node("worker2").items() if key != left_out}
    findings = cluster_findings(site, "1.36.3", seen(site, [*NODES[:2], silent], [pod()]))
    assert [entry.subject for entry in findings if entry.verdict != "PASS"] == ["worker2"]
