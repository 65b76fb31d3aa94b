"""Pages of virtual clusters, and why a job waits: the quota, its holders, and the use of their GPUs."""

from __future__ import annotations

import re
from http import HTTPStatus

import pytest
from starlette.testclient import TestClient

from pai_install.console.services import ConsoleServices
from pai_install.kube.model import Ref
from pai_install.report.virtual_clusters_usage import quota_usage_report
from tests.unit.console.conftest import eventually, signed_in
from tests.unit.console.live import LiveCluster
from tests.unit.console.pages.cluster import fill, measured, running_pod, seen, workload
from tests.unit.console.pages.test_jobs import EVIL, shown


@pytest.fixture
def used(web: TestClient, services: ConsoleServices, kubernetes: LiveCluster) -> TestClient:
    """A console of a cluster in use."""
    fill(web, services, kubernetes)
    return web


def rows(page: str, caption: str) -> list[list[str]]:
    """Cells of the table with this caption."""
    table = next(it for it in re.findall(r"<table>.*?</table>", page, re.DOTALL) if caption in it)
    body = table.partition("<tbody>")[2]
    return [
        [
            re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", cell)).strip()
            for cell in re.findall(r"<t[dh].*?</t[dh]>", row, re.DOTALL)
        ]
        for row in re.findall(r"<tr[^>]*>.*?</tr>", body, re.DOTALL)
    ]


def test_a_waiting_job_shows_who_holds_its_quota(used: TestClient) -> None:
    page = shown(used, "/jobs/alice~train")
    assert 'id="why"' in page
    (quota,) = rows(page, "Quota of research")
    assert quota[:4] == ["a100", "2", "16", "8"]
    holder, hidden = rows(page, "Holders of this quota")
    assert holder[:5] == ["holds", "carol", "research", "8", "▶ RUNNING"]
    assert holder[6] == "idle for 2:00 (41 % on average)"
    assert hidden[:3] == ["jobs of other groups: 1", "default", "8"]
    assert 'href="/jobs/carol~holds"' in page


def test_another_group_is_counted_and_not_named(used: TestClient) -> None:
    for path in ("/jobs/alice~train", "/virtual-clusters", "/virtual-clusters/default", "/virtual-clusters/research"):
        page = shown(used, path)
        assert "hides" not in page, path
        assert "bob" not in page, path
    page = shown(used, "/virtual-clusters/research", "bob")
    assert "holds" not in page
    assert "carol" not in page
    assert "jobs of other groups: 2" in page


def test_an_administrator_sees_all_holders(used: TestClient) -> None:
    page = shown(used, "/jobs/alice~train", "root")
    found = rows(page, "Holders of this quota")
    assert [(row[0], row[1]) for row in found] == [("holds", "carol"), ("hides", "bob")]
    assert found[1][6] == "busy (97 % on average)"


def test_what_nothing_measures_is_not_known(
    used: TestClient, services: ConsoleServices, kubernetes: LiveCluster
) -> None:
    kubernetes.put(running_pod("holds", "vision-1", "carol", "g1"))
    eventually(lambda: "not known" in shown(used, "/jobs/alice~train"))
    holder = rows(shown(used, "/jobs/alice~train"), "Holders of this quota")[0]
    assert holder[6] == "not known"


@pytest.mark.parametrize("level", [12, 100])
def test_the_use_of_a_running_job_is_on_its_page(used: TestClient, kubernetes: LiveCluster, level: int) -> None:
    kubernetes.put(running_pod("holds", "vision-1", "carol", "g1", measured(level, 600, 50)))
    text = "busy (50 % on average)" if level == 100 else f"{level} % busy (50 % on average)"
    eventually(lambda: text in re.sub(r"<[^>]+>", "", shown(used, "/jobs/carol~holds")))
    assert 'id="why"' not in shown(used, "/jobs/carol~holds")


def test_a_job_with_reserved_quota_waits_for_a_node(
    used: TestClient, services: ConsoleServices, kubernetes: LiveCluster
) -> None:
    kubernetes.put(workload("train", "vision-1", "research", 2, reserved=True))
    eventually(lambda: seen(services) == 3 and not any(one.waits for one in services.model.usage().jobs))
    page = shown(used, "/jobs/alice~train")
    assert "The quota is reserved for the job" in page
    assert [row[0] for row in rows(page, "Holders of this quota")] == ["holds", "jobs of other groups: 1"]


def test_an_object_that_is_no_job_of_a_known_form(used: TestClient, kubernetes: LiveCluster) -> None:
    """The page stays, without its quota."""
    made = kubernetes.objects[Ref("jobset", "train", "vision-1")]
    kubernetes.put({**made, "spec": {"replicatedJobs": "none"}})
    assert 'id="why"' not in shown(used, "/jobs/alice~train")


def test_the_list_has_the_numbers_of_vc_usage(used: TestClient, services: ConsoleServices) -> None:
    page = shown(used, "/virtual-clusters")
    model = services.model
    for cluster in quota_usage_report(model.profile.require_scheduling(), model.usage()).virtual_clusters:
        for quota in cluster.quota:
            amounts = (quota.guaranteed, quota.used, quota.lent, quota.borrowed)
            numbers = "".join(rf'<td class="number">{amount}</td>\s*' for amount in amounts)
            assert re.search(rf"<td>{quota.sku}</td>\s*{numbers}", page), (cluster.name, quota)
    assert "jobs: 1, 2 nvidia.com/gpu" in page


def test_a_virtual_cluster(used: TestClient) -> None:
    page = shown(used, "/virtual-clusters/research")
    assert [row[0] for row in rows(page, "Jobs that have not ended")] == ["holds", "train"]
    answer = used.get("/virtual-clusters/nothing", headers=signed_in("alice"))
    assert answer.status_code == HTTPStatus.NOT_FOUND
    answer = used.get("/virtual-clusters/%3Cscript%3E", headers=signed_in("alice"))
    assert "<script>" not in answer.text


def test_missing_machines_are_told(used: TestClient, services: ConsoleServices, kubernetes: LiveCluster) -> None:
    found = kubernetes.objects[Ref("node", "g3")]
    kubernetes.put({**found, "spec": {"unschedulable": True}})
    paths = ("/virtual-clusters", "/virtual-clusters/research", "/jobs/alice~train")
    eventually(lambda: seen(services) == 3 and all("g3 is cordoned" in shown(used, path) for path in paths))


def test_names_of_others_are_escaped(used: TestClient, kubernetes: LiveCluster) -> None:
    made = kubernetes.objects[Ref("jobset", "holds", "vision-1")]
    notes = {**made["metadata"]["annotations"], "pai-install/job-name": EVIL}
    kubernetes.put({**made, "metadata": {**made["metadata"], "annotations": notes}})
    eventually(lambda: "alert(1)" in shown(used, "/jobs/alice~train"))
    for path in ("/jobs/alice~train", "/virtual-clusters/research"):
        assert EVIL not in shown(used, path)
