"""The page of runs: for administrators, with remedies, and with hostile texts escaped."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from starlette.testclient import TestClient

from pai_install.report.run_history import FailedTask, RunSummary, with_run
from tests.unit.console.conftest import signed_in
from tests.unit.console.live import LiveCluster
from tests.unit.console.pages.test_jobs import EVIL, shown
from tests.unit.console.pages.test_waiting import rows

FAILED = FailedTask(machine="gpu-07", task="Install the kubelet", cause=EVIL, remedy="free space on the disk")
GOOD = RunSummary(run="20261127T013428Z", verb="apply", exit_code=0, duration_s=88, changed=63, machines={"changed": 3})
BAD = RunSummary(
    run="20261127T020000Z", verb="node add", exit_code=6, machines={"failed": 1, "ok": 2},
    others={"gpu-07": "failed"}, failures=(FAILED,), checks=("gpu-07: dns",), more=4,
)  # fmt: skip


@pytest.fixture
def kept(web: TestClient, kubernetes: LiveCluster) -> TestClient:
    kubernetes.put(with_run(with_run(None, GOOD), BAD))
    return web


def test_runs(kept: TestClient) -> None:
    page = shown(kept, "/runs", "root")
    first, second = rows(page, "The last runs")
    assert (first[1], first[5]) == ("node add", "1 failed, 2 ok")
    assert first[2].endswith("6")
    assert (second[1], second[3], second[4]) == ("apply", "88 s", "63")
    (task,) = rows(page, f"Failed tasks of {BAD.run}")
    assert (task[0], task[1], task[3]) == ("gpu-07", "Install the kubelet", "free space on the disk")
    assert EVIL not in page


def test_it_is_for_administrators(kept: TestClient) -> None:
    for who in ("alice", "bob", "dan"):
        answer = kept.get("/runs", headers=signed_in(who))
        assert answer.status_code == HTTPStatus.FORBIDDEN
        assert "gpu-07" not in answer.text
    assert kept.get("/runs").status_code == HTTPStatus.SEE_OTHER


def test_no_runs(web: TestClient) -> None:
    assert "No run has changed anything yet." in shown(web, "/runs", "root")
