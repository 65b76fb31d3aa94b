"""Home and storages: one's own things, and for administrators what needs attention."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from pai_install.console.services import ConsoleServices
from tests.unit.console.conftest import eventually
from tests.unit.console.live import LiveCluster
from tests.unit.console.pages.cluster import measured, running_pod
from tests.unit.console.pages.test_jobs import shown
from tests.unit.console.pages.test_nodes import change
from tests.unit.console.pages.test_waiting import rows, used

__all__ = ["used"]


def counts(page: str) -> dict[str, str]:
    found = re.findall(r"state=(\w+)\"><strong>(\d+)</strong>", page)
    return {state: number for state, number in found if number != "0"}


def test_home_has_ones_own_jobs(used: TestClient) -> None:
    page = shown(used, "/")
    assert counts(page) == {"WAITING": "1"}
    (mine,) = rows(page, "My jobs that have not ended")
    assert mine[1:4] == ["train", "research", "2"]
    assert 'href="/jobs/alice~train#why"' in page
    assert "holds" not in page
    assert counts(shown(used, "/", "carol")) == {"RUNNING": "1"}


@pytest.mark.parametrize(
    ("who", "clusters"),
    [("alice", {"research", "default"}), ("bob", {"default"}), ("dan", set()), ("root", {"research", "default"})],
)
def test_home_has_the_quota_of_ones_groups(used: TestClient, who: str, clusters: set[str]) -> None:
    found = rows(shown(used, "/", who), "My quota")
    assert {row[0] for row in found} - {"no virtual cluster"} == clusters


def test_administrators_see_sick_nodes_and_abnormal_jobs(
    used: TestClient, services: ConsoleServices, kubernetes: LiveCluster
) -> None:
    change(kubernetes, "g3", spec={"unschedulable": True})
    kubernetes.put(running_pod("holds", "vision-1", "carol", "g1", measured(0, 30 * 86400, 1)))
    eventually(lambda: "Abnormal jobs" in shown(used, "/", "root"))
    page = shown(used, "/", "root")
    assert "g3" in {row[1] for row in rows(page, "Sick nodes")}
    assert "holds" in {row[0] for row in rows(page, "Abnormal jobs")}
    for who in ("alice", "bob", "dan"):
        page = shown(used, "/", who)
        assert "Sick nodes" not in page
        assert "Abnormal jobs" not in page


@pytest.mark.parametrize(
    ("who", "names"), [("alice", {"team"}), ("bob", set()), ("dan", set()), ("root", {"team", "sets"})]
)
def test_storages_are_those_of_ones_groups(web: TestClient, who: str, names: set[str]) -> None:
    page = shown(web, "/storages", who)
    found = {row[0]: row for row in rows(page, "Storages that your jobs may mount")}
    assert set(found) - {"no storages"} == names
    if "team" in names:
        assert found["team"][2] == "nas.example.com:/team"
        assert found["team"][5] == "Vision_1"
        assert "<td>Data &lt;b&gt;&amp; models&lt;/b&gt;</td>" in page
