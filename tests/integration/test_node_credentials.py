"""What root of a worker cannot do with the credentials there: requests to a real API server with the policies."""

from __future__ import annotations

import json
import urllib.error
from typing import Any

import pytest

from tests.addons import ROOT, addon_action
from tests.integration.control_plane import Api
from tests.integration.shared_control_plane import wait_for_policies, wait_for_rights

NODES = "/api/v1/nodes"
FLANNEL = "/api/v1/namespaces/kube-flannel"
MERGE = "application/merge-patch+json"
CONTAINER = {"name": "main", "image": "any"}
KUBELETS = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "kubelets"},
    "rules": [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["get", "patch"]},
    ],
}
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "kubelets"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kubelets"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"}],
}


def refusal(api: Api, method: str, path: str, body: Any) -> str:
    """Why a request is refused, else empty."""
    try:
        api.ask(method, path, body, MERGE if method == "PATCH" else "application/json")
    except urllib.error.HTTPError as error:
        return str(json.load(error)["message"])
    return ""


@pytest.fixture(scope="module")
def server(api: Api) -> Api:
    """Two nodes, flannel's account with a pod on the first one, and a namespace of a group."""
    values = {"cidr": "10.200.0.0/13", "backend": "vxlan", "image": "flannel"}
    for addon, given in (("flannel", values), ("node_credentials", {})):
        for entry in addon_action().objects_of(ROOT / "addons" / addon, given, ()):
            if entry["kind"] != "DaemonSet":
                api.apply(entry)
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    for name in ("one", "two"):
        api.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"a": "b"}}})
    pod = {"serviceAccountName": "flannel", "nodeName": "one", "containers": [CONTAINER]}
    metadata = {"name": "flannel-1", "namespace": "kube-flannel"}
    assert api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}) == ""
    api.apply(KUBELETS)
    api.apply(BINDING)
    wait_for_policies(api)
    wait_for_rights(api)
    return api


def token_of(api: Api, pod: str) -> str:
    """A token of flannel's account, of a pod if there is one."""
    spec: dict[str, Any] = {"audiences": []}
    if pod:
        uid = api.ask("GET", f"{FLANNEL}/pods/{pod}")["metadata"]["uid"]
        spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return str(api.ask("POST", f"{FLANNEL}/serviceaccounts/flannel/token", body)["status"]["token"])


def annotated(name: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {f"flannel.alpha.coreos.com/{name}": "vxlan"}}}


@pytest.fixture
def flannel(server: Api) -> Api:
    """With the token that root of node `one` reads."""
    return server.as_(token_of(server, "flannel-1"))


def test_flannel_writes_its_own_node(flannel: Api) -> None:
    ready = {"type": "NetworkUnavailable", "status": "False", "reason": "FlannelIsUp"}
    assert refusal(flannel, "PATCH", f"{NODES}/one/status", annotated("backend-data")) == ""
    assert refusal(flannel, "PATCH", f"{NODES}/one/status", {"status": {"conditions": [ready]}}) == ""


@pytest.mark.parametrize(
    ("node", "change"),
    [
        ("two", annotated("backend-data")),
        ("two", {"status": {"conditions": []}}),
        ("one", {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}),
        ("one", {"metadata": {"labels": {"a": None}}}),
        ("one", {"metadata": {"annotations": {"pai-install/any": "x"}}}),
    ],
    ids=["other-node", "status-of-other-node", "label", "no-label", "annotation"],
)
def test_flannel_changes_nothing_else(flannel: Api, node: str, change: dict[str, Any]) -> None:
    assert "pai-flannel-nodes" in refusal(flannel, "PATCH", f"{NODES}/{node}/status", change)


def test_a_token_of_no_pod_changes_no_node(server: Api) -> None:
    found = refusal(server.as_(token_of(server, "")), "PATCH", f"{NODES}/one/status", annotated("backend-data"))
    assert "pai-flannel-nodes" in found


@pytest.mark.parametrize(
    ("namespace", "labels", "refused"),
    [
        ("kube-system", {"component": "etcd", "tier": "control-plane"}, False),
        ("kube-system", {}, False),
        ("kube-system", {"k8s-app": "kube-dns"}, True),
        ("team", {}, True),
    ],
    ids=["kubeadm", "no-labels", "dns", "namespace-of-a-group"],
)
def test_static_pods(server: Api, namespace: str, labels: dict[str, str], *, refused: bool) -> None:
    metadata = {"generateName": "static-", "namespace": namespace, "labels": labels}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": "one", "containers": [CONTAINER]},
    }
    assert ("pai-static-pods" in kubelet_of(server).create(pod)) == refused


def kubelet_of(server: Api) -> Api:
    return server.in_the_name_of("system:node:one").with_header("Impersonate-Group: system:nodes")


@pytest.mark.parametrize("path", [f"{NODES}/one", f"{NODES}/one/status"], ids=["node", "status"])
@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {"pai-install/pinned": "vision"}},
        {"labels": {"a": "c"}},
        {"labels": {"a": None}},
        {"annotations": {"flannel.alpha.coreos.com/public-ip": "10.0.0.9"}},
        {"annotations": {"pai-install/owned": "{}"}},
        {"finalizers": ["example.com/never"]},
    ],
    ids=["virtual-cluster", "label", "no-label", "tunnel", "annotation", "finalizer"],
)
def test_a_kubelet_does_not_choose_its_pods(server: Api, path: str, metadata: dict[str, Any]) -> None:
    assert "pai-kubelet-nodes" in refusal(kubelet_of(server), "PATCH", path, {"metadata": metadata})


def test_a_kubelet_does_not_uncordon_its_node(server: Api) -> None:
    server.ask("PATCH", f"{NODES}/one", {"spec": {"unschedulable": True}}, MERGE)
    change = {"spec": {"unschedulable": False}}
    assert "pai-kubelet-nodes" in refusal(kubelet_of(server), "PATCH", f"{NODES}/one", change)


def test_a_kubelet_reports_its_own_labels_and_status(server: Api) -> None:
    metadata = {"labels": {"kubernetes.io/arch": "arm64"}, "annotations": {"node.alpha.kubernetes.io/ttl": "0"}}
    assert refusal(kubelet_of(server), "PATCH", f"{NODES}/one", {"metadata": metadata}) == ""
    change = {"metadata": metadata, "status": {"capacity": {"pods": "5"}}}
    assert refusal(kubelet_of(server), "PATCH", f"{NODES}/one/status", change) == ""


def test_dns_reads_no_pods(server: Api) -> None:
    role = server.ask("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:coredns")
    assert {name for rule in role["rules"] for name in rule["resources"]} == {
        "endpoints",
        "endpointslices",
        "namespaces",
        "services",
    }
