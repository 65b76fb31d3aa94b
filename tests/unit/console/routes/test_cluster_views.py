"""Virtual clusters, SKUs, storages, groups, nodes, and old pages over the API."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest
from starlette.testclient import TestClient

from pai_install.console.routes.old_pages import PAGES
from pai_install.console.services import ConsoleServices
from pai_install.schedulers.kueue.compile import flavor_name
from tests.unit.console.conftest import eventually, signed_in
from tests.unit.console.live import LiveCluster

API = "/rest-server/api/v2"


def read(web: TestClient, path: str, who: str = "alice") -> Any:
    return web.get(f"{API}{path}", headers=signed_in(who)).json()


def node(name: str, gpus: int) -> dict[str, Any]:
    status = {"allocatable": {"nvidia.com/gpu": str(gpus)}, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {}, "status": status}


def queue(name: str, flavor: str, gpus: int) -> dict[str, Any]:
    """A ClusterQueue with reserved quota."""
    used = {"name": flavor, "resources": [{"name": "nvidia.com/gpu", "total": str(gpus)}]}
    status = {"flavorsReservation": [used]}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "status": status,
    }


@pytest.fixture
def used(web: TestClient, services: ConsoleServices, kubernetes: LiveCluster) -> TestClient:
    """A cluster in use."""
    scheduling = services.model.profile.require_scheduling()
    labels = {"pai-install/user": "alice"}
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "3"}}}
    kubernetes.put(node("g1", 8), node("g2", 8), queue("research", flavor_name(scheduling, "a100"), 3))
    kubernetes.put(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "vision-1", "labels": labels},
            "spec": {"nodeName": "g1", "containers": [container]},
            "status": {"phase": "Running"},
        }
    )
    eventually(lambda: len(services.model.nodes()) == 2 and len(services.model.pods()) == 1)
    eventually(lambda: len(list(services.model.nodes())) == 2)
    return web


def test_virtual_clusters(used: TestClient, services: ConsoleServices) -> None:
    services.model.forget()
    found = read(used, "/virtual-clusters")
    assert set(found) == {"research", "default"}
    research = found["research"]
    assert {"capacity", "usedCapacity", "dedicated", "resourcesUsed", "resourcesGuaranteed", "resourcesTotal"} <= set(
        research
    )
    assert research["resourcesUsed"]["gpu"] == research["resourcesUsed"]["GPUs"] == 3
    assert research["resourcesGuaranteed"]["gpu"] > 0
    assert 0 < research["usedCapacity"] <= 100
    assert read(used, "/virtual-clusters/research") == research
    assert used.get("/rest-server/api/v1/virtual-clusters", headers=signed_in("bob")).json() == found


def test_gpus_of_nodes(used: TestClient) -> None:
    found = read(used, "/virtual-clusters?nodes")
    assert found["g1"] == {"gpuUsed": 3, "gpuAvailable": 5, "gpuTotal": 8}
    assert found["g2"]["gpuUsed"] == 0


def test_an_unknown_virtual_cluster(web: TestClient) -> None:
    assert read(web, "/virtual-clusters/nothing")["code"] == "NoVirtualClusterError"
    assert read(web, "/cluster/sku-types?vc=nothing")["code"] == "NoVirtualClusterError"


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_virtual_clusters_are_changed_in_the_files_of_the_site(web: TestClient, method: str) -> None:
    answer = web.request(method, f"{API}/virtual-clusters/research", headers=signed_in("root"))
    assert (answer.status_code, answer.json()["code"]) == (HTTPStatus.NOT_IMPLEMENTED, "NotImplementedError")
    answer = web.request(method, f"{API}/virtual-clusters/research", headers=signed_in("alice"))
    assert answer.json()["code"] == "ForbiddenUserError"


def test_sku_types(web: TestClient) -> None:
    found = read(web, "/cluster/sku-types")
    assert found["a100"] == {"gpu": 1, "cpu": 10, "memory": 115200}
    assert found["epyc"]["gpu"] == 0
    assert set(read(web, "/cluster/sku-types?vc=research")) <= set(found)


@pytest.mark.parametrize(
    ("who", "names"), [("alice", {"team"}), ("bob", set()), ("dan", set()), ("root", {"team", "sets"})]
)
def test_storages_are_those_of_the_callers_groups(web: TestClient, who: str, names: set[str]) -> None:
    found = read(web, "/storages", who)["storages"]
    assert {one["name"] for one in found} == names
    assert all(set(one) == {"name", "share", "volumeName", "default"} for one in found)
    one = read(web, "/storages/team", who)
    if "team" in names:
        assert (one["type"], one["data"]) == ("nfs", {"server": "nas.example.com", "path": "/team"})
    else:
        assert one["code"] == "NoStorageError"


def test_no_storage_is_mounted_by_default(web: TestClient) -> None:
    assert read(web, "/storages?default=true") == {"storages": []}


def test_groups(web: TestClient) -> None:
    found = {one["groupname"]: one for one in read(web, "/groups", "bob")}
    assert list(found) == ["admins", "default", "Vision_1", "nlp"]
    acls = found["Vision_1"]["extension"]["acls"]
    assert acls == {"admin": False, "virtualClusters": ["research", "default"], "storageConfigs": ["team"]}
    assert found["admins"]["extension"]["acls"]["admin"] is True
    assert read(web, "/groups/nlp") == found["nlp"]
    assert read(web, "/groups/other")["code"] == "NoGroupError"


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [("POST", "", "new"), ("PUT", "", "nlp"), ("PUT", "/nlp", ""), ("DELETE", "/nlp", "")],
)
def test_groups_are_changed_in_the_files_of_the_site(web: TestClient, method: str, path: str, name: str) -> None:
    for who in ("root", "alice", "program"):
        answer = web.request(method, f"{API}/groups{path}", json={"groupname": name}, headers=signed_in(who))
        assert (answer.status_code, answer.json()["code"]) == (HTTPStatus.FORBIDDEN, "ForbiddenUserError")


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/kubernetes/nodes", "/api/v1/nodes"),
        ("/kubernetes/pods", "/api/v1/pods"),
        ("/kubernetes/pods?namespace=nlp", "/api/v1/namespaces/nlp/pods"),
        ("/kubernetes/pods?labelSelector=a%3Db%26limit%3D1", "/api/v1/pods?labelSelector=a%3Db%26limit%3D1"),
    ],
)
def test_kubernetes_lists_are_read_as_the_caller(
    web: TestClient, kubernetes: LiveCluster, path: str, asked: str
) -> None:
    kubernetes.paths[asked] = '{"items": []}'
    assert read(web, path, "root") == {"items": []}
    assert ("raw", asked) in kubernetes.calls
    assert read(web, path, "alice")["code"] == "ForbiddenUserError"


@pytest.mark.parametrize("namespace", ["../../secrets?", "a/b", "A", "%00"])
def test_other_paths_are_not_asked(web: TestClient, kubernetes: LiveCluster, namespace: str) -> None:
    answer = web.get(f"{API}/kubernetes/pods", params={"namespace": namespace}, headers=signed_in("root"))
    assert answer.json()["code"] == "InvalidParametersError"
    assert not [path for method, path in kubernetes.calls if method == "raw"]


def test_alerts_without_monitoring(web: TestClient) -> None:
    assert read(web, "/alerts") == []


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/jobs",
            "/virtual-clusters",
            "/virtual-clusters/default",
            "/cluster/sku-types",
            "/storages",
            "/storages/team",
        ),
        *("/groups", "/groups/nlp", "/kubernetes/nodes", "/kubernetes/pods", "/alerts"),
    ],
)
def test_every_route_needs_a_caller(web: TestClient, path: str) -> None:
    answer = web.get(f"{API}{path}")
    assert (answer.status_code, answer.json()["code"]) == (HTTPStatus.UNAUTHORIZED, "UnauthorizedUserError")


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/job-detail.html?username=alice&jobName=train", "/jobs/alice~train"),
        ("/job-detail.html?username=//evil.example.com&jobName=x", "/jobs/%2F%2Fevil.example.com~x"),
        ("/job-detail.html", "/jobs"),
        ("/job-list.html", "/jobs"),
        ("/submit.html", "/jobs/new"),
        ("/index.html", "/"),
        ("/task-attempt.html?username=alice&jobName=train&taskIndex=0", "/jobs/alice~train"),
        ("/virtual-clusters.html", "/virtual-clusters"),
        ("/cluster-view/services.html", "/services"),
        ("/cluster-view/hardware.html", "/nodes"),
        ("/cluster-view/hardware/detail.html?instance=g1:9100", "/nodes/g1"),
        ("/cluster-view/hardware/detail.html?instance=//evil.example.com", "/nodes/%2F%2Fevil.example.com"),
    ],
)
def test_pages_of_the_old_portal_lead_to_ours(web: TestClient, path: str, target: str) -> None:
    answer = web.get(path)
    assert (answer.status_code, answer.headers["location"]) == (HTTPStatus.FOUND, target)


@pytest.mark.parametrize("path", [*PAGES, "/job-detail.html", "/cluster-view/hardware/detail.html"])
def test_every_page_of_the_old_portal_is_one_of_ours(web: TestClient, path: str) -> None:
    target = web.get(path).headers["location"]
    if target != "/login":
        assert web.get(target, headers=signed_in("root")).status_code == HTTPStatus.OK


def test_a_page_that_clients_probe_does_not_exist(web: TestClient) -> None:
    assert web.get("/view.html").status_code == HTTPStatus.NOT_FOUND


def test_clients_of_absent_services_read_json(web: TestClient) -> None:
    items = web.get("/marketplace/api/items?author=alice&source=pai")
    assert (items.status_code, items.json()) == (HTTPStatus.OK, [])
    for method, path in (
        ("GET", "/marketplace/api/items/1"),
        ("POST", "/marketplace/api/items"),
        ("PUT", "/webhdfs/api/v1/code/a.tar.gz?op=CREATE"),
        ("GET", "/webhdfs/api/v1/?op=LISTSTATUS"),
    ):
        answer = web.request(method, path, content=b"x")
        assert (answer.status_code, answer.json()["code"]) == (HTTPStatus.NOT_IMPLEMENTED, "NotImplementedError"), path
        assert answer.json()["message"].startswith(path.partition("?")[0])
