"""Labels and taints of the layout reach the node, come back when somebody takes them off, and go with the layout."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .conftest import Cluster

pytestmark = pytest.mark.lab

NODE = "lab-worker2"
MARKS = '    labels: {example.com/rack: r1}\n    taints: ["example.com/dedicated=training:PreferNoSchedule"]\n'


def node(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cluster.kubectl("get", "node", NODE, "--output", "json"))
    return found


def reasons(cluster: Cluster) -> list[str]:
    """Why phase labels would run; empty when it would not."""
    phases = {phase["name"]: phase["hosts"] for phase in cluster.plan()["phases"]}
    return [reason for step in phases.get("labels", ()) for reason in step["reasons"] if step["host"] == NODE]


def test_labels_and_taints_follow_the_layout(cluster: Cluster) -> None:
    layout = cluster.site / "layout.yaml"
    before = layout.read_text()
    head, marker, tail = before.partition(f"hostname: {NODE}\n")
    assert marker
    cluster.kubectl("label", "node", NODE, "example.com/admin=yes")
    layout.write_text(head + marker + MARKS + tail)
    try:
        assert cluster.converge("--phase", "labels")["ok"]
        found = node(cluster)
        assert found["metadata"]["labels"]["example.com/rack"] == "r1"
        mark = {"key": "example.com/dedicated", "value": "training", "effect": "PreferNoSchedule"}
        assert mark in found["spec"]["taints"]
        assert reasons(cluster) == []

        cluster.kubectl("label", "node", NODE, "example.com/rack-")
        assert reasons(cluster) == [f"node {NODE} lacks label example.com/rack=r1"]
        assert cluster.converge("--phase", "labels")["hosts"][NODE]["changed"] == 1
    finally:
        layout.write_text(before)
        report = cluster.converge("--phase", "labels", "--limit", NODE)
    assert report["ok"], report["stderr"]
    found = node(cluster)
    assert "example.com/rack" not in found["metadata"]["labels"]
    assert found["metadata"]["labels"]["example.com/admin"] == "yes"
    assert not found["spec"].get("taints")
    assert reasons(cluster) == []
