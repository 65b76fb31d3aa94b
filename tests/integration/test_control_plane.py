"""All modules share one API server: what one of them left or took away, the next one does not see."""

from __future__ import annotations

import urllib.error
import warnings
from typing import Any

import pytest

from tests.integration.control_plane import Api, Json, let_in
from tests.integration.shared_control_plane import ControlPlane
from tests.integration.users.test_rights import asked
from tests.waiting import until

RBAC, POLICIES = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
MAPS, ROLES = "/api/v1/namespaces/default/configmaps", f"/apis/{RBAC}/v1/clusterroles"
MERGE = "application/merge-patch+json"
WIDGETS = "/apis/example.org/v1/widgets"
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "s", "namespace": "default"},
    "spec": {"type": "NodePort", "clusterIP": "10.0.0.77", "ports": [{"port": 80, "nodePort": 30123}]},
}


def objects(api: Api) -> dict[str, Any]:
    """Path of each kind -> its objects, in every version that is served."""
    paths = {"/api/v1": api.ask("GET", "/api/v1")}
    for group in api.ask("GET", "/apis")["groups"]:
        for version in group["versions"]:
            path = f"/apis/{version['groupVersion']}"
            paths[path] = api.ask("GET", path)
    kinds = [
        f"{path}/{it['name']}"
        for path, found in paths.items()
        for it in found["resources"]
        if "list" in it["verbs"] and it["name"] not in ("componentstatuses", "leases")
    ]
    found = {kind: api.ask("GET", kind)["items"] for kind in kinds}
    for items in found.values():
        for it in items:
            it["metadata"].pop("resourceVersion")
    return found


def definition(scope: str, content: Json) -> Json:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": content}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {"group": "example.org", "scope": scope, "names": names, "versions": [version]},
    }


def widget(**metadata: Any) -> Json:
    content = {"name": "w", **metadata}
    return {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": content, "size": 1}


def is_served(api: Api, path: str) -> bool:
    try:
        api.ask("GET", path)
    except urllib.error.HTTPError:
        return False
    return True


def map_of(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def add_policies(api: Api) -> None:
    """Every ConfigMap gets a value, and those with one are refused."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "failurePolicy": "Fail"}
    change = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{data: {'a': 'b'}}"}}
    mutating = {"mutations": [change], "reinvocationPolicy": "Never"}
    validating = {"validations": [{"expression": "!has(object.data)"}]}
    for sort, content, binding in (
        ("Mutating", mutating, {}),
        ("Validating", validating, {"validationActions": ["Deny"]}),
    ):
        for kind, one in (("", {**spec, **content}), ("Binding", {**binding, "policyName": "all"})):
            entry = {"kind": f"{sort}AdmissionPolicy{kind}", "metadata": {"name": "all"}, "spec": one}
            api.apply({"apiVersion": f"{POLICIES}/v1", **entry})
    until(lambda: api.create(map_of("a"), "?dryRun=All") != "")


def add_user(api: Api) -> Api:
    """An account that may read everything."""
    api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "u", "namespace": "default"}})
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
    subjects = [{"kind": "ServiceAccount", "name": "u", "namespace": "default"}]
    binding = {"metadata": {"name": "u"}, "roleRef": reference, "subjects": subjects}
    api.apply({"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", **binding})
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = api.ask("POST", "/api/v1/namespaces/default/serviceaccounts/u/token", body)["status"]["token"]
    user = api.as_(token)
    until(lambda: asked(user, "GET", "/api/v1/secrets") == "")
    return user


def leave_much(api: Api) -> Api:
    """Returns the user that is left."""
    user = add_user(api)
    api.apply(definition("Cluster", {"type": "object", "properties": {"size": {"type": "integer"}}}))
    until(lambda: is_served(api, WIDGETS))
    assert api.create(widget(finalizers=["example.org/never"])) == ""
    api.ask("DELETE", f"{WIDGETS}/w")
    for name in ("left", "ending"):
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    api.ask("DELETE", "/api/v1/namespaces/ending")
    assert api.create(SERVICE) == ""
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"a": "b"}}})
    api.ask("DELETE", f"{ROLES}/edit")
    api.kubeconfig("left", "alice-token")
    let_in(api.folder, [])
    add_policies(api)
    return user


def test_the_next_module_sees_nothing_of_this_one(api: Api, control_plane: ControlPlane) -> None:
    before, files = objects(api), sorted(api.folder.iterdir())
    user = leave_much(api)
    assert objects(api) != before
    with warnings.catch_warnings(action="error"):
        again = control_plane.fresh()
    assert again.port == api.port
    # at once
    assert api.create(map_of("a"), "?dryRun=All") == ""
    assert asked(user, "GET", "/api/v1/secrets") != ""
    assert not is_served(api, WIDGETS)
    assert objects(again) == before
    assert sorted(api.folder.iterdir()) == files


@pytest.mark.parametrize(("scope", "kind", "size"), [("Cluster", "integer", 1), ("Namespaced", "string", "large")])
def test_the_next_module_defines_the_same_kind(
    control_plane: ControlPlane, scope: str, kind: str, size: object
) -> None:
    api = control_plane.fresh()
    api.apply(definition(scope, {"type": "object", "properties": {"size": {"type": kind}}}))
    until(lambda: is_served(api, WIDGETS))
    assert api.create({**widget(**({"namespace": "default"} if scope == "Namespaced" else {})), "size": size}) == ""
    assert api.create(SERVICE) == ""


def test_a_preparation_runs_once(control_plane: ControlPlane) -> None:
    """Its objects are as it made them, and what tests did with them is gone."""
    done = []

    def prepare(api: Api) -> str:
        done.append(api.create(map_of("prepared")))
        return str(api.ask("GET", f"{MAPS}/prepared")["metadata"]["uid"])

    for change in ("DELETE", "PATCH"):
        uid = control_plane.prepared("test", prepare)
        api = control_plane.servers.api
        found = api.ask("GET", f"{MAPS}/prepared")
        assert (found["metadata"]["uid"], "data" in found) == (uid, False)
        api.ask(change, f"{MAPS}/prepared", {"data": {"a": "b"}} if change == "PATCH" else None, MERGE)
    assert done == [""]
    assert "not found" in asked(control_plane.fresh(), "GET", f"{MAPS}/prepared")


def test_what_does_not_go_away_gets_another_api_server(api: Api, control_plane: ControlPlane) -> None:
    control_plane.servers.program.kill()
    with pytest.warns(UserWarning, match="another API server"):
        found = control_plane.fresh()
    assert found.port != api.port
    assert found.create(map_of("a")) == ""
