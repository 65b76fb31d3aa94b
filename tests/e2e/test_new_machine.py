"""One more machine joins: no other machine is changed for it. It stays, so this file comes late in the alphabet."""

from __future__ import annotations

import json

import pytest

from .conftest import SUBNET, Cluster, pai_install

pytestmark = pytest.mark.lab

NEW = "lab-worker3"
ENTRY = f"""
  - hostname: {NEW}
    hostip: {SUBNET}.14
    machine-type: lab-master
    pai-worker: "true"
"""


def test_one_more_machine_changes_no_other(cluster: Cluster) -> None:
    """By its name alone: what it needs on others, and its proof, are part of its plan."""
    layout = cluster.site / "layout.yaml"
    layout.write_text(layout.read_text().rstrip() + ENTRY)
    up = pai_install("lab", "up", "--site", str(cluster.site), "--yes")
    assert up.returncode == 0, up.stderr
    phases = [phase for phase in cluster.plan()["phases"] if phase["name"] not in ("verify", "health")]
    assert {step["host"] for phase in phases for step in phase["hosts"]} == {NEW}
    report = cluster.apply("--limit", NEW)
    assert report["exit_code"] == 0, report["stderr"]
    assert {host for host, counts in report["hosts"].items() if counts["changed"]} == {NEW}
    nodes = json.loads(cluster.kubectl("get", "nodes", NEW, "--output", "json"))
    assert ("Ready", "True") in {(one["type"], one["status"]) for one in nodes["status"]["conditions"]}
    assert cluster.to_change() == []
