"""User administration over OpenPAI's API, decided by a real API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.console.conftest import PASSWORDS, Console
from tests.integration.control_plane import Json
from tests.integration.shared_control_plane import wait_for_rights
from tests.integration.users.test_rights import asked
from tests.waiting import until

USERS = "/api/v2/users"
PASSWORD = "test_password"


@pytest.fixture(scope="module")
def dora(console: Console) -> str:
    """The token of an administrator."""
    return console.token("dora")


@pytest.fixture
def user(console: Console, dora: str) -> Iterator[str]:
    """A user with a name of OpenPAI."""
    made = console.ask("POST", USERS, dora, {"username": "sdk_test_user", "password": PASSWORD})
    assert made == {"status": 201, "message": "User is created successfully"}
    yield "sdk_test_user"
    console.ask("PUT", f"{USERS}/sdk_test_user/grouplist", dora, {"grouplist": []})
    console.ask("DELETE", f"{USERS}/sdk_test_user", dora)
    # the next test makes an account of this name
    until(lambda: not console.sign_in.users.uid("sdk_test_user"))


def code(found: Json) -> tuple[int, str]:
    return found["status"], found.get("code", "")


def test_an_administrator_makes_a_user_who_signs_in_at_once(console: Console, dora: str, user: str) -> None:
    assert code(console.ask("POST", f"{USERS}/", dora, {"username": user, "password": PASSWORD})) == (
        409,
        "ConflictUserError",
    )
    token = console.token(user, PASSWORD)
    assert console.ask("GET", f"{USERS}/{user}", token)["username"] == "sdk-test-user"
    assert {one["username"] for one in console.ask("GET", USERS, dora)["list"]} == {*PASSWORDS, "sdk-test-user"}


def test_members_of_a_group_are_for_administrators(console: Console, dora: str) -> None:
    path = "/api/v2/groups/{}/userlist".format
    assert [one["username"] for one in console.ask("GET", path("vision"), dora)["list"]] == ["alice", "bob"]
    assert console.ask("GET", path("no-such-group"), dora)["list"] == []
    assert code(console.ask("GET", path("vision"), console.token("alice"))) == (403, "ForbiddenUserError")


def test_the_same_password_again_ends_no_session(console: Console, dora: str, user: str) -> None:
    token = console.token(user, PASSWORD)
    for new, status in ((PASSWORD, 200), ("another_password", 401)):
        change = {"username": user, "oldPassword": PASSWORD, "newPassword": new}
        assert console.ask("PUT", f"{USERS}/me", token, {"data": change})["status"] == 201
        assert console.ask("GET", f"{USERS}/{user}", token)["status"] == status


def test_groups_come_and_go(console: Console, dora: str, user: str) -> None:
    def groups() -> list[str]:
        found: list[str] = console.ask("GET", f"{USERS}/{user}", dora)["grouplist"]
        return found

    assert console.ask("PUT", f"{USERS}/{user}/group", dora, {"groupname": "vision"})["status"] == 201
    assert console.ask("PUT", f"{USERS}/{user}/group/", dora, {"groupname": "speech"})["status"] == 201
    assert groups() == ["speech", "vision"]
    assert console.ask("DELETE", f"{USERS}/{user}/group", dora, {"groupname": "speech"})["status"] == 201
    assert groups() == ["vision"]
    assert console.ask("PUT", f"{USERS}/{user}/grouplist", dora, {"grouplist": ["speech"]})["status"] == 201
    assert groups() == ["speech"]
    assert code(console.ask("PUT", f"{USERS}/{user}/group", dora, {"groupname": "nothing"})) == (404, "NoGroupError")


def test_an_administrator_is_made_and_leaves_before_it_is_removed(console: Console, dora: str, user: str) -> None:
    assert console.ask("PUT", f"/api/v1/user/{user}/admin", dora, {"admin": True})["status"] == 201
    found = console.ask("GET", f"{USERS}/{user}", dora)
    assert (found["admin"], found["grouplist"]) == (True, ["ops"])
    assert code(console.ask("DELETE", f"{USERS}/{user}", dora)) == (403, "RemoveAdminError")
    data = {"data": {"username": user, "admin": False}, "patch": True}
    assert console.ask("PUT", USERS, dora, data)["status"] == 201
    assert console.ask("GET", f"{USERS}/{user}", dora)["admin"] is False
    assert console.ask("DELETE", f"{USERS}/{user}", dora)["status"] == 200
    assert code(console.ask("DELETE", f"{USERS}/{user}", dora)) == (404, "NoUserError")


def test_nobody_removes_themselves(console: Console, dora: str) -> None:
    assert code(console.ask("DELETE", f"{USERS}/dora", dora)) == (403, "RemoveAdminError")
    assert console.ask("PUT", "/api/v1/user/dora/admin", dora, {"admin": False})["status"] == 403
    assert console.ask("GET", f"{USERS}/dora", dora)["admin"] is True


def test_password_and_data_are_changed(console: Console, dora: str, user: str) -> None:
    data = {"username": user, "email": "new@example.org", "password": "new_test_password", "extension": {"a": [1]}}
    full = {**data, "virtualCluster": ["default"], "admin": False}
    assert console.ask("PUT", USERS, dora, {"data": full, "patch": False})["status"] == 201
    found = console.ask("GET", f"{USERS}/{user}", dora)
    assert (found["email"], found["extension"]) == ("new@example.org", {"a": [1]})
    assert console.login(user, PASSWORD)["code"] == "IncorrectPasswordError"
    token = console.token(user, "new_test_password")
    own = {"data": {"username": user, "email": "own@example.org"}, "patch": True}
    assert console.ask("PUT", f"{USERS}/me", token, own)["status"] == 201
    assert console.ask("GET", f"{USERS}/{user}", token)["email"] == "own@example.org"
    listed = {one["username"]: one["email"] for one in console.ask("GET", USERS, dora)["list"]}
    assert listed == {**dict.fromkeys(PASSWORDS, ""), "sdk-test-user": "own@example.org"}
    other = {"data": {"username": "alice", "email": "own@example.org"}}
    assert console.ask("PUT", f"{USERS}/me", token, other)["status"] == 403


def test_an_administrators_change_stands_in_the_cluster(console: Console, dora: str, user: str) -> None:
    console.ask("PUT", f"/api/v2/user/{user}/email", dora, {"email": "a@example.org"})
    found = console.admin.ask("GET", "/api/v1/namespaces/pai-users/serviceaccounts/sdk-test-user")
    assert found["metadata"]["annotations"]["pai-install/changed-by"] == "dora"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", USERS, None),
        ("POST", USERS, {"username": "evil", "password": PASSWORD}),
        ("PUT", USERS, {"data": {"username": "bob", "password": PASSWORD}}),
        ("DELETE", f"{USERS}/bob", None),
        ("PUT", f"{USERS}/alice/group", {"groupname": "ops"}),
        ("DELETE", f"{USERS}/bob/group", {"groupname": "vision"}),
        ("PUT", f"{USERS}/alice/grouplist", {"grouplist": ["ops"]}),
        ("PUT", "/api/v1/user/alice/admin", {"admin": True}),
        ("PUT", "/api/v2/user/bob/password", {"newPassword": PASSWORD}),
        ("PUT", "/api/v2/user/bob/email", {"email": "x"}),
        ("GET", f"{USERS}/bob", None),
    ],
)
def test_a_member_changes_nobody(console: Console, method: str, path: str, body: Json | None) -> None:
    found = console.ask(method, path, console.token("alice"), body)
    assert code(found) == (403, "ForbiddenUserError")
    assert found["message"] == "Non-admin is not allow to do this operation."


def test_the_api_server_decides_and_not_the_console(console: Console, dora: str) -> None:
    """An administrator by the console's memory, who has lost the right meanwhile, changes nothing."""
    binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/pai-user-dora"
    kept = console.admin.ask("GET", binding)
    caller = console.sign_in.users.caller("dora", console.sign_in.tokens.caller(dora).kind)
    assert caller.admin
    console.admin.ask("DELETE", binding)
    try:
        # before that, it would make the user
        wait_for_rights(console.admin)
        assert console.ask("POST", USERS, dora, {"username": "evil", "password": PASSWORD})["status"] == 403
    finally:
        for name in ("resourceVersion", "uid", "creationTimestamp", "managedFields"):
            kept["metadata"].pop(name, None)
        assert console.admin.create(kept) == ""
        until(lambda: console.ask("GET", USERS, dora)["status"] == 200)
    path = "/api/v1/namespaces/pai-users/serviceaccounts/evil"
    assert "not found" in asked(console.admin, "GET", path)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"username": "x" * 64, "password": PASSWORD}, 400),
        ({"username": "kube-system/../x", "password": PASSWORD}, 400),
        ({"username": "new-user", "password": "short"}, 400),
        ({"username": "new-user", "password": "admin-password"}, 400),
        ({"username": "new-user"}, 400),
        ({"username": ["x"], "password": PASSWORD}, 400),
        ({"username": "new-user", "password": PASSWORD, "grouplist": ["nothing"]}, 404),
        ({"username": "new-user", "password": PASSWORD, "extension": {"a": "b" * 100_000}}, 400),
    ],
)
def test_a_user_that_cannot_be_made_leaves_nothing(console: Console, dora: str, body: Json, status: int) -> None:
    assert console.ask("POST", USERS, dora, body)["status"] == status
    names = {one["username"] for one in console.ask("GET", USERS, dora)["list"]}
    assert names == set(PASSWORDS)
