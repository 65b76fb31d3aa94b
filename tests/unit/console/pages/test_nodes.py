"""Pages of nodes and health."""

from __future__ import annotations

import re
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import pytest
from starlette.testclient import TestClient

from pai_install.app.node_health import GpuGroup, NodeGpus
from pai_install.console.pages.nodes import PAGE, STATES, squares_of
from pai_install.console.pages.rendering import Frame, rendered
from pai_install.console.services import ConsoleServices
from pai_install.kube.labels import CORDONED_BY_HEALTH
from pai_install.kube.model import Ref
from tests.unit.app.test_job_quota import TRAIN
from tests.unit.console.conftest import eventually, signed_in
from tests.unit.console.live import LiveCluster
from tests.unit.console.pages.cluster import GPU
from tests.unit.console.pages.test_jobs import EVIL, shown
from tests.unit.console.pages.test_waiting import rows, used
from tests.unit.console.routes.test_cluster_views import node

__all__ = ["used"]


def cell(page: str, name: str) -> str:
    """The part of the grid about a node."""
    found = re.search(rf'<li><a href="/nodes/{name}">.*?</li>', page, re.DOTALL)
    assert found is not None
    return found[0]


def squares(part: str) -> dict[str, int]:
    """Kind of GPU -> number of squares."""
    found = re.findall(r'<(?:a|span) class="(\w+)"[^>]*>((?:<i></i>)+)', part)
    return {kind: whole.count("<i>") for kind, whole in found}


def change(kubernetes: LiveCluster, name: str, **fields: Any) -> None:
    before = kubernetes.objects[Ref("node", name)]
    kubernetes.put({**before, **{key: {**before.get(key, {}), **value} for key, value in fields.items()}})


def test_every_gpu_has_a_square(used: TestClient) -> None:
    page = shown(used, "/nodes", "root")
    assert squares(cell(page, "g1")) == {"used": 1, "free": 7}
    assert 'href="/jobs/carol~holds"' in cell(page, "g1")
    assert squares(cell(page, "g3")) == {"free": 8}


def test_a_member_sees_gpus_and_no_job_of_another_group(used: TestClient) -> None:
    page = shown(used, "/nodes", "alice")
    assert "carol~holds" in cell(page, "g1")
    assert squares(cell(page, "g2"))["hidden"] > 0
    for path in ("/nodes", "/nodes/g2"):
        page = shown(used, path, "alice")
        assert "hides" not in page
        assert "bob" not in page
    assert "hides" in shown(used, "/nodes/g2", "bob")
    assert "Conditions" not in shown(used, "/nodes/g2", "bob")


def test_a_node_with_its_jobs_and_conditions(used: TestClient) -> None:
    page = shown(used, "/nodes/g1", "root")
    (job,) = rows(page, "Jobs with GPUs of this node")
    assert job[:3] == ["holds", "carol", "research"]
    assert job[6] == "idle for 2:00 (41 % on average)"
    assert rows(page, "Conditions")[0][:2] == ["Ready", "True"]
    answer = used.get("/nodes/%3Cscript%3E", headers=signed_in("root"))
    assert answer.status_code == HTTPStatus.NOT_FOUND
    assert "<script>" not in answer.text


def test_states_have_squares_of_their_own(used: TestClient, kubernetes: LiveCluster) -> None:
    change(kubernetes, "g3", spec={"unschedulable": True})
    change(kubernetes, "g2", status={"conditions": [{"type": "Ready", "status": "Unknown", "message": EVIL}]})
    change(kubernetes, "g1", status={"allocatable": {GPU: "6"}})
    eventually(lambda: squares(cell(shown(used, "/nodes", "root"), "g3")) == {"cordoned": 8})
    eventually(lambda: "sick" in squares(cell(shown(used, "/nodes", "root"), "g2")))
    eventually(lambda: squares(cell(shown(used, "/nodes", "root"), "g1")).get("sick") == 2)
    page = shown(used, "/nodes?state=cordoned", "root")
    assert "Nodes 1 to 1 of 1" in page
    assert 'href="/nodes/g3"' in page
    for path in ("/nodes/g2", "/health"):
        page = shown(used, path, "root")
        assert EVIL not in page
        assert "&lt;script&gt;" in page


def told(services: ConsoleServices, web: TestClient) -> str:
    """The page of health, with findings of now."""
    services.model.forget()
    return shown(web, "/health", "root")


def test_findings_have_actions(used: TestClient, services: ConsoleServices, kubernetes: LiveCluster) -> None:
    change(kubernetes, "g3", spec={"unschedulable": True}, metadata={"labels": {CORDONED_BY_HEALTH: "gpu-lost"}})
    change(kubernetes, "g2", spec={"unschedulable": True}, metadata={"labels": {CORDONED_BY_HEALTH: EVIL}})
    eventually(lambda: EVIL.replace("<", "&lt;").replace(">", "&gt;") in told(services, used))
    found = {row[1]: row for row in rows(shown(used, "/health", "root"), "Findings")}
    assert found["g3"][0].endswith("FAIL")
    assert found["g3"][2] == "gpu-lost"
    assert found["g3"][4]
    assert found["g3"][5] not in ("", "none")
    assert "&lt;script&gt;" in found["g2"][2]
    # machines of the site that are no nodes
    assert "t1" in found


@pytest.mark.parametrize("path", ["/health", "/services"])
def test_pages_of_administrators(used: TestClient, path: str) -> None:
    for who in ("alice", "bob", "dan"):
        answer = used.get(path, headers=signed_in(who))
        assert answer.status_code == HTTPStatus.FORBIDDEN
        assert "hides" not in answer.text
    assert used.get(path).status_code == HTTPStatus.SEE_OTHER
    assert "<table>" in shown(used, path, "root")


def test_a_thousand_nodes_are_small_pages(web: TestClient, services: ConsoleServices, kubernetes: LiveCluster) -> None:
    kubernetes.put(*(node(f"gpu-{number:04}", 8) for number in range(1000)))
    eventually(lambda: len(services.model.nodes()) == 1000)
    page = shown(web, "/nodes", "root")
    assert len(page) < 300 * 1024
    assert "of 1005" in page
    assert f"offset={PAGE}" in page
    page = shown(web, "/nodes?offset=900&keyword=gpu", "root")
    assert "Nodes 901 to 1000 of 1000" in page
    assert 'rel="next"' not in page
    assert "Nodes 0 to 0 of 0" in shown(web, "/nodes?keyword=%22%3E%3Cscript%3E", "root")
    assert "Nodes 1 to" in shown(web, "/nodes?offset=-1", "root")


def test_a_page_of_nodes_with_a_job_on_each_gpu_is_small() -> None:
    """Names of users and jobs as they may be at most in a label."""
    job = replace(TRAIN, name="j" * 40, user="u" * 30)
    groups = (GpuGroup("used", 1, job),) * 8
    made = NodeGpus("gpu-0001.example.org", "a100", ready=True, cordoned=False, groups=groups)
    values: dict[str, Any] = {
        **dict.fromkeys(("total", "first", "last", "age"), 0),
        **dict.fromkeys(("before", "after"), ""),
        "sums": dict.fromkeys(STATES, 0),
        "skus": [],
        "states": STATES,
        "query": {},
    }
    frame, squares_of_each = Frame("en", "/nodes"), squares_of(made, None)
    answer = rendered(frame, "nodes.html", rows=[(made, squares_of_each)] * PAGE, **values)
    assert len(answer.body) < 300 * 1024


def test_shared_gpus_and_instances_of_one_job_stay_few_squares() -> None:
    jobs = [replace(TRAIN, name=f"job{number}") for number in range(100)]
    groups = tuple(GpuGroup("used", 1, job) for job in [*jobs, jobs[0], jobs[0]])
    found = squares_of(NodeGpus("n", "a100", ready=True, cordoned=False, groups=groups), None)
    assert found[0].address == "/jobs/alice~job0"
    assert found[0].count == 3
    assert (len(found), found[-1].name) == (13, "")
