"""One more machine joins and leaves again: no other machine is changed for it."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.layouts import worker_entry
from tests.perf.engine_tasks import newest_log, tasks_elsewhere

from .conftest import SUBNET, Cluster, pai_install

pytestmark = pytest.mark.lab

NEW = "lab-worker3"
ENTRY = worker_entry(NEW, f"{SUBNET}.14", "lab-master")
# of twenty at a site with three control planes: each is observed and probed, and one of them signs, labels and proves
TASKS_ELSEWHERE = 16
HOW = ("--hostip", f"{SUBNET}.14", "--machine-type", "lab-master")


def test_one_more_machine_changes_no_other(cluster: Cluster) -> None:
    """By its name alone: what it needs on others, and its proof, are part of its plan."""
    layout = cluster.site / "layout.yaml"
    before = layout.read_text()
    layout.write_text(before.rstrip() + ENTRY)
    up = pai_install("lab", "up", "--site", str(cluster.site), "--yes")
    assert up.returncode == 0, up.stderr
    phases = [phase for phase in cluster.plan()["phases"] if phase["name"] not in ("verify", "health")]
    assert {step["host"] for phase in phases for step in phase["hosts"]} == {NEW}
    layout.write_text(before)
    done = cluster.run("node", "add", NEW, *HOW, "--yes", "--format", "json")
    report = json.loads(done.stdout[done.stdout.index("{") :])
    assert done.returncode == 0, (report, done.stderr)
    assert {host for host, counts in report["hosts"].items() if counts["changed"]} == {NEW}
    elsewhere = tasks_elsewhere(newest_log(cluster.site), NEW)
    assert set(elsewhere) == {"lab-master"}
    assert elsewhere.total() <= TASKS_ELSEWHERE
    assert layout.read_text().startswith(before.rstrip("\n"))
    nodes = json.loads(cluster.kubectl("get", "nodes", NEW, "--output", "json"))
    assert ("Ready", "True") in {(one["type"], one["status"]) for one in nodes["status"]["conditions"]}
    assert cluster.to_change() == []


def test_it_leaves_as_it_came(cluster: Cluster) -> None:
    """The node, what is on the machine, and its entry in the layout."""
    layout = cluster.site / "layout.yaml"
    done = cluster.run("node", "remove", NEW, "--yes", "--force", "--format", "json")
    report = json.loads(done.stdout[done.stdout.index("{") :])
    assert done.returncode == 0, (report, done.stderr)
    assert {host for host, counts in report["hosts"].items() if counts["changed"]} == {NEW}
    assert cluster.ask("get", "node", NEW).returncode != 0
    assert NEW not in [one["hostname"] for one in yaml.safe_load(layout.read_text())["machine-list"]]
    assert cluster.to_change() == []
