"""The console's account on a real API server: what it does in the names of users, and what nobody lets it do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pai_install.users.console_rights import NAME, NAMESPACE, console_objects, constrained
from pai_install.users.objects import account, membership
from tests.integration.control_plane import Api, Json
from tests.integration.users.conftest import NAMESPACES, Users
from tests.integration.users.test_rights import asked, pod
from tests.waiting import until

USER = "system:serviceaccount:pai-users:{}"
REVIEW: Json = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
JOBS = "/apis/batch/v1/namespaces/vision/jobs"


@pytest.fixture(scope="module", params=["1.36.3", "1.35.9"])
def version(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def console(users: Users, version: str) -> Iterator[Api]:
    """The console's token. Version 1.35 has the plain verb alone, which later API servers also take."""
    made = [*console_objects("kueue", NAMESPACES, version)]
    for entry in made:
        users.admin.apply(entry)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = users.admin.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAME}/token", body)
    yield users.admin.as_(token["status"]["token"])
    for entry in reversed(made):
        if entry["kind"] in ("Role", "ClusterRole"):
            space = entry["metadata"].get("namespace")
            place = f"/namespaces/{space}/roles" if space else "/clusterroles"
            users.admin.ask("DELETE", f"/apis/rbac.authorization.k8s.io/v1{place}/{entry['metadata']['name']}")


@pytest.fixture
def alice(console: Api) -> Api:
    found = console.in_the_name_of(USER.format("alice"))
    until(lambda: asked(found, "GET", JOBS) == "")
    return found


def test_no_object_is_named_twice(version: str) -> None:
    named = [
        (it["kind"], it["metadata"].get("namespace"), it["metadata"]["name"])
        for it in console_objects("kueue", NAMESPACES, version)
    ]
    assert len(named) == len(set(named))


def test_it_is_the_user(alice: Api) -> None:
    info = alice.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", REVIEW)["status"]["userInfo"]
    assert info["username"] == USER.format("alice")
    assert {"system:serviceaccounts", "system:serviceaccounts:pai-users"} <= set(info["groups"])


def test_it_makes_reads_and_stops_jobs_of_the_user(alice: Api) -> None:
    assert alice.create(pod("in-my-name", "alice")) == ""
    path = "/api/v1/namespaces/vision/pods/in-my-name"
    assert asked(alice, "GET", path) == ""
    assert asked(alice, "DELETE", f"{path}?gracePeriodSeconds=0") == ""


def test_policies_see_the_user(alice: Api) -> None:
    assert "label pai-install/user: alice" in alice.create(pod("of-another", "bob"))


@pytest.mark.parametrize(
    "user",
    [
        "admin",
        "system:serviceaccount:kube-system:default",
        "system:serviceaccount:pai-console:pai-console",
        "oidc:eve",
        "system:node:gpu-1",
    ],
)
def test_it_is_nobody_else(console: Api, user: str) -> None:
    for path in (JOBS, "/api/v1/nodes", "/api/v1/namespaces/kube-system/secrets"):
        assert "cannot impersonate" in asked(console.in_the_name_of(user), "GET", path)


@pytest.mark.parametrize("header", ["Impersonate-Group: system:masters", "Impersonate-Uid: 1"])
def test_it_adds_nothing_to_a_user(alice: Api, header: str) -> None:
    assert "cannot impersonate" in asked(alice.with_header(header), "GET", "/api/v1/nodes")


def test_it_reads_no_secret_in_any_name(console: Api, alice: Api) -> None:
    for user in (console, alice, console.in_the_name_of(USER.format("dora"))):
        for space in ("vision", "kube-system", "pai-users"):
            assert "cannot" in asked(user, "GET", f"/api/v1/namespaces/{space}/secrets")


def test_a_right_that_only_the_user_has_is_not_borrowed(users: Users, alice: Api, version: str) -> None:
    """Kubernetes 1.35 has no such limit."""
    rbac = "rbac.authorization.k8s.io"
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}
    metadata = {"name": "secrets-of-alice", "namespace": "vision"}
    users.admin.apply({"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]})
    users.admin.apply(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": metadata["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": "alice", "namespace": "pai-users"}],
        }
    )
    path = "/api/v1/namespaces/vision/secrets"
    until(lambda: asked(users.of["alice"], "GET", path) == "")
    if constrained(version):
        assert "cannot impersonate-on:serviceaccount:list" in asked(alice, "GET", path)
    users.admin.ask("DELETE", f"/apis/{rbac}/v1/namespaces/vision/rolebindings/{metadata['name']}")


def test_it_is_in_no_other_namespace(users: Users, alice: Api) -> None:
    for path in ("/api/v1/namespaces/speech/pods", "/api/v1/namespaces/kube-system/pods", "/api/v1/nodes"):
        assert "cannot" in asked(alice, "GET", path)


def test_it_reads_logs_of_the_system_in_the_name_of_an_administrator_alone(console: Api) -> None:
    path = "/api/v1/namespaces/kube-system/pods/any/log"
    assert "cannot get" in asked(console, "GET", path)
    assert "cannot" in asked(console.in_the_name_of(USER.format("alice")), "GET", path)
    assert "not found" in asked(console.in_the_name_of(USER.format("dora")), "GET", path)


def test_in_its_own_name_it_changes_nothing(console: Api) -> None:
    assert asked(console, "GET", "/api/v1/pods") == ""
    assert "cannot create" in console.create(pod("mine", "alice"))
    assert "cannot create" in console.create(account("gina"))
    assert "cannot create" in console.create(membership("gina", "vision", "vision"))
    assert "cannot delete" in asked(console, "DELETE", "/api/v1/namespaces/vision/pods/any")
    assert "cannot get" in asked(console, "GET", "/api/v1/namespaces/vision/pods/any/log")


def test_it_makes_no_token_in_any_name(console: Api, alice: Api) -> None:
    """A token of the API server would outlive a stolen session, and a stolen token of the console."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    for sender in (console, alice, console.in_the_name_of(USER.format("dora"))):
        for user in ("alice", "dora"):
            path = f"/api/v1/namespaces/pai-users/serviceaccounts/{user}/token"
            assert "cannot" in asked(sender, "POST", path, body)


def test_it_makes_users_in_the_names_of_administrators_alone(console: Api, alice: Api) -> None:
    dora = console.in_the_name_of(USER.format("dora"))
    assert "cannot create" in alice.create(account("gina"))
    assert dora.create(account("gina")) == ""
    assert dora.create(membership("gina", "vision", "vision")) == ""
    assert (
        asked(dora, "DELETE", "/apis/rbac.authorization.k8s.io/v1/namespaces/vision/rolebindings/pai-user-gina") == ""
    )
    assert asked(dora, "DELETE", "/api/v1/namespaces/pai-users/serviceaccounts/gina") == ""


def test_a_name_without_an_account_may_nothing(console: Api) -> None:
    ghost = console.in_the_name_of(USER.format("ghost"))
    assert "cannot list" in asked(ghost, "GET", JOBS)
