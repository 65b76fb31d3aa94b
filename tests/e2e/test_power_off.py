"""A machine lost its power in the middle of the installation: nobody waited for it, the next run did the rest."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from .conftest import LOST, PLANTED_SECRET, Founding

pytestmark = pytest.mark.lab

OTHERS = ("lab-master", "lab-worker1")


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The JSON that a verb printed, which must agree with its exit code where it names one."""
    found: dict[str, Any] = json.loads(done.stdout)
    assert found.get("exit_code", done.returncode) == done.returncode
    return found


def test_the_run_names_the_lost_machine(founding: Founding) -> None:
    report = document(founding.cut)
    assert founding.cut.returncode == 5, founding.cut.stderr
    phases = {phase["name"]: phase for phase in report["phases"]}
    assert phases["runtime"]["hosts"][LOST]["status"] == "unreachable"
    assert phases["workers"]["hosts"][LOST]["status"] == "left"
    assert LOST in founding.cut.stderr


def test_the_others_came_to_their_end(founding: Founding) -> None:
    for phase in document(founding.cut)["phases"]:
        for host, result in phase["hosts"].items():
            if host != LOST:
                assert result["status"] in ("ok", "changed"), (phase["name"], host, result)
    machines = {one["name"]: one["state"] for one in document(founding.status_off)["machines"]}
    assert all("Ready" in machines[host] for host in OTHERS), machines


def test_nothing_that_was_printed_holds_the_secret(founding: Founding) -> None:
    for done in (founding.plan, founding.cut, founding.status_off, founding.plan_off):
        assert PLANTED_SECRET not in done.stdout + done.stderr


def test_status_of_a_site_with_a_lost_machine(founding: Founding) -> None:
    status = document(founding.status_off)
    assert founding.status_off.returncode == 5
    states = {one["name"]: one["state"] for one in status["machines"]}
    assert states[LOST] == "not reached"
    assert LOST in status["last_run"]["left"]
    assert status["last_run"]["exit_code"] == 5


def test_plan_of_a_site_with_a_lost_machine(founding: Founding) -> None:
    plan = document(founding.plan_off)
    assert founding.plan_off.returncode == 5
    assert list(plan["unreachable"]) == [LOST]
    assert plan["unreachable"][LOST]
    assert LOST not in {step["host"] for phase in plan["phases"] for step in phase["hosts"]}


def test_logs_of_a_site_with_a_lost_machine(founding: Founding) -> None:
    logs = founding.logs_off
    assert logs.returncode == 5
    assert all(f"{host}: " in logs.stdout for host in OTHERS)
    assert f"{LOST}: " not in logs.stdout
    assert LOST in logs.stderr


def test_the_next_run_does_what_was_left(founding: Founding) -> None:
    done = founding.cluster.quickstart
    assert done.returncode == 0, done.stdout + done.stderr
    nodes = json.loads(founding.cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    assert LOST in {node["metadata"]["name"] for node in nodes}
