"""Tokens of OpenPAI's API on a real API server."""

from __future__ import annotations

import base64
import time
from datetime import timedelta

import pytest

from pai_install.app.users import password_link
from pai_install.console.caller import CallerKind
from pai_install.console.sign_in.tokens import jwt_content
from pai_install.users.changes import UserGroup
from pai_install.users.credentials import CredentialKind
from pai_install.users.first_administrator import first_administrator
from pai_install.users.objects import account, membership
from tests.integration.clients import http_client
from tests.integration.console.conftest import HOST, PASSWORDS, Console
from tests.integration.control_plane import Json
from tests.integration.users.conftest import Users
from tests.stopwatch import Stopwatch
from tests.waiting import until

LOGIN = "/rest-server/api/v2/authn/basic/login"
ME = "/api/v2/users/{}"


def test_a_user_signs_in_by_form_and_by_json(console: Console) -> None:
    body = {"username": "alice", "password": PASSWORDS["alice"]}
    for answer in (console.new().post(LOGIN, data=body), console.new().post("/rest-server/api/v1/token", json=body)):
        found = answer.json()
        assert answer.status_code == 200
        assert (found["user"], found["admin"], found["hasGitHubPAT"]) == ("alice", False, False)
        assert console.ask("GET", ME.format("alice"), found["token"])["grouplist"] == ["vision"]
    assert console.login("dora", PASSWORDS["dora"])["admin"] is True


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"username": "alice", "password": "wrong password"}, "IncorrectPasswordError"),
        ({"username": "nobody", "password": "wrong password"}, "NoUserError"),
        ({"username": "", "password": ""}, "InvalidParametersError"),
        ({"username": "alice", "password": ""}, "InvalidParametersError"),
        ({"username": "alice", "password": PASSWORDS["alice"], "expiration": "59"}, "InvalidParametersError"),
        ({"username": "alice", "password": PASSWORDS["alice"], "expiration": "a week"}, "InvalidParametersError"),
        ({"username": "../../secrets/signing", "password": "wrong password"}, "NoUserError"),
        ({"username": "a" * 300, "password": "wrong password"}, "InvalidParametersError"),
    ],
)
def test_a_refused_sign_in(console: Console, body: dict[str, str], code: str) -> None:
    answer = console.new().post(LOGIN, data=body)
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_a_token_ends_when_the_client_wants(console: Console) -> None:
    body = {"username": "alice", "password": PASSWORDS["alice"], "expiration": 60}
    assert console.new().post(LOGIN, json=body).status_code == 200


def test_a_token_of_a_client_that_wants_more_ends_at_the_limit(console: Console) -> None:
    """OpenPAI's portal asks for a week, whatever the site says."""
    body = {"username": "alice", "password": PASSWORDS["alice"], "expiration": 999_999_999}
    claims = jwt_content(console.new().post(LOGIN, json=body).json()["token"])
    assert round(claims["exp"] - claims["iat"]) in (168 * 3600 - 1, 168 * 3600)


def test_without_a_provider_its_addresses_answer_as_the_api_does(console: Console) -> None:
    for path in ("v2/authn/oidc/login", "v1/authn/oidc/login", "v2/authn/oidc/return", "v2/authn/oidc/logout"):
        answer = console.new().get(f"/rest-server/api/{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "NoApiError"), path


def test_who_signs_in_ten_times_is_hashed_once(console: Console) -> None:
    console.token("alice")
    watch = Stopwatch()
    for _ in range(10):
        console.token("alice")
    assert watch.within(1)


def test_logout_ends_a_token(console: Console) -> None:
    token, other = console.token("alice"), console.token("alice")
    answer = console.ask("DELETE", "/api/v2/authn/basic/logout", token)
    assert answer == {"status": 200, "message": "Logout successfully"}
    found = console.ask("GET", ME.format("alice"), token)
    assert (found["status"], found["code"], found["message"]) == (
        401,
        "UnauthorizedUserError",
        "Your token is invalid.",
    )
    assert console.ask("GET", ME.format("alice"), other)["status"] == 200


def test_an_application_token_is_listed_revoked_and_limited(console: Console) -> None:
    alice = console.token("alice")
    made = console.ask("POST", "/api/v2/tokens/application", alice)
    program = made["token"]
    assert made["application"] is True
    assert console.ask("GET", "/api/v2/tokens/check", program)["status"] == 200
    assert console.ask("GET", ME.format("alice"), program)["status"] == 200
    for method, path in (
        ("GET", "/api/v2/tokens"),
        ("POST", "/api/v2/tokens/application"),
        ("DELETE", f"/api/v2/tokens/{program}"),
        ("DELETE", "/api/v2/authn/basic/logout"),
        ("GET", "/api/v2/users"),
        ("PUT", "/api/v2/users/me"),
        ("PUT", "/api/v2/user/alice/password"),
        ("DELETE", "/api/v2/users/bob"),
    ):
        found = console.ask(method, path, program, {})
        assert (found["status"], found["code"]) == (403, "ForbiddenUserError"), path
        assert found["message"] == "Applications are not allowed to do this operation."
    (listed,) = [one for one in console.ask("GET", "/api/v2/tokens", alice)["tokens"] if program.startswith(one)]
    assert listed.endswith(".")
    assert console.ask("GET", "/api/v2/tokens/check", listed)["status"] == 401
    bob = console.token("bob")
    assert console.ask("DELETE", f"/api/v2/tokens/{program}", bob)["status"] == 403
    assert console.ask("DELETE", f"/api/v2/tokens/{listed}", bob)["status"] == 403
    assert console.ask("DELETE", f"/api/v2/tokens/{listed}", alice)["status"] == 200
    assert console.ask("GET", "/api/v2/tokens/check", program)["status"] == 401


def test_a_kubeconfig_token_counts_and_ends_with_it(console: Console, users: Users) -> None:
    token = users.tokens["carol"]["status"]["token"]
    assert console.ask("GET", ME.format("carol"), token)["grouplist"] == ["speech"]
    assert console.ask("GET", ME.format("alice"), token)["status"] == 403


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "admin-token", "eyJhbGciOiJub25lIn0.eyJ1c2VybmFtZSI6InJvb3QifQ."])
def test_no_token_of_a_user(console: Console, token: str) -> None:
    assert console.ask("GET", ME.format("alice"), token)["status"] == 401


def test_a_cookie_is_no_credential_of_the_api(console: Console) -> None:
    browser = console.new()
    value = console.sign_in.sessions.open(console.sign_in.users.caller("alice", CallerKind.PASSWORD))
    answer = browser.get("/rest-server/api/v2/users/alice", headers={"Cookie": f"__Host-Http-pai={value}"})
    assert answer.status_code == 401


def test_tokens_and_sessions_end_with_the_account_within_two_seconds(console: Console) -> None:
    uid = console.admin.apply(account("frank"))["metadata"]["uid"]
    console.admin.apply(membership("frank", "vision", "vision"))
    console.sign_in.passwords.write("frank", uid, "password of frank")
    token = console.token("frank", "password of frank")
    program = console.ask("POST", "/api/v2/tokens/application", token)["token"]
    session = console.sign_in.sessions.open(console.sign_in.users.caller("frank", CallerKind.PASSWORD))
    assert console.ask("GET", ME.format("frank"), program)["status"] == 200
    assert console.sign_in.sessions.caller(session) is not None
    console.admin.ask("DELETE", "/api/v1/namespaces/pai-users/serviceaccounts/frank")
    watch = Stopwatch()
    until(lambda: console.ask("GET", ME.format("frank"), token)["status"] == 401)
    assert console.ask("GET", ME.format("frank"), program)["status"] == 401
    assert console.sign_in.sessions.caller(session) is None
    assert watch.within(2)
    # who comes later under the name gets none of it, and not the password either
    console.admin.apply(account("frank"))
    until(lambda: console.sign_in.users.uid("frank") not in ("", uid))
    for old in (token, program):
        assert console.ask("GET", ME.format("frank"), old)["status"] == 401
    assert console.sign_in.sessions.caller(session) is None
    assert console.login("frank", "password of frank")["status"] == 400
    console.admin.ask("DELETE", "/api/v1/namespaces/pai-users/serviceaccounts/frank")


def test_a_new_password_ends_earlier_tokens(console: Console) -> None:
    token = console.token("bob")
    time.sleep(1.1)
    body: Json = {"data": {"username": "bob", "oldPassword": PASSWORDS["bob"], "newPassword": "another password"}}
    wrong = {"data": {**body["data"], "oldPassword": "wrong password"}}
    assert console.ask("PUT", "/api/v2/users/me", token, wrong)["code"] == "IncorrectPasswordError"
    assert console.ask("PUT", "/api/v2/users/me", token, body)["status"] == 201
    assert console.ask("GET", ME.format("bob"), token)["status"] == 401
    assert console.login("bob", PASSWORDS["bob"])["status"] == 400
    assert console.login("bob", "another password")["status"] == 200
    console.sign_in.passwords.write("bob", console.sign_in.users.uid("bob"), PASSWORDS["bob"])


def test_what_is_kept_in_the_cluster_is_of_no_use_to_a_reader(console: Console) -> None:
    token = console.token("alice")
    program = console.ask("POST", "/api/v2/tokens/application", token)["token"]
    found = console.admin.ask("GET", "/api/v1/namespaces/pai-console/secrets")
    text = " ".join(
        base64.b64decode(value).decode() for item in found["items"] for value in item.get("data", {}).values()
    )
    assert PASSWORDS["alice"] not in text
    assert program not in text
    assert token not in text


def test_the_first_administrator_signs_in_and_gets_a_hash_of_its_own(console: Console) -> None:
    groups = [UserGroup("speech", "speech", administrators=True)]
    made = first_administrator("admin", "given by the site", groups, "salt")
    assert made is not None
    data = {name: base64.b64encode(value.encode()).decode() for name, value in made.secret["secret_data"].items()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": made.secret["metadata"], "data": data}
    for entry in (*made.objects, secret):
        console.admin.apply(entry)
    assert console.login("admin", "wrong password")["code"] == "IncorrectPasswordError"
    until(lambda: console.login("admin", "given by the site").get("admin") is True)
    uid = console.sign_in.users.uid("admin")
    kept = console.sign_in.store.find(CredentialKind.PASSWORD, "admin", fresh=True)
    assert kept is not None
    assert (kept.uid, kept.data["hash"].startswith("$argon2id$")) == (uid, True)
    console.sign_in.passwords.write("admin", uid, "a password of its own")
    assert console.login("admin", "given by the site")["status"] == 400
    assert console.login("admin", "a password of its own")["status"] == 200
    password_link(http_client(console.admin), "admin", f"https://{HOST}", timedelta(hours=1), replace=True)
    until(lambda: console.login("admin", "a password of its own")["status"] == 400)
    assert console.login("admin", "given by the site")["status"] == 400, "nor does that of the site count again"


def test_an_administrator_revokes_all_that_a_user_has(console: Console) -> None:
    uid = console.admin.apply(account("thief"))["metadata"]["uid"]
    console.sign_in.passwords.write("thief", uid, "password of thief")
    until(lambda: console.sign_in.users.uid("thief") == uid)
    thief = console.sign_in.users.caller("thief", CallerKind.PASSWORD)
    assert thief is not None
    sessions, cookie = console.sign_in.sessions, console.sign_in.sessions.open(thief)
    assert sessions.caller(cookie) is not None
    token = console.token("thief", "password of thief")
    program = console.ask("POST", "/api/v2/tokens/application", token)["token"]
    assert console.ask("GET", ME.format("thief"), program)["status"] == 200
    watch = Stopwatch()
    made = password_link(http_client(console.admin), "thief", f"https://{HOST}", timedelta(hours=1), replace=True)
    until(lambda: {console.ask("GET", ME.format("thief"), one)["status"] for one in (token, program)} == {401})
    until(lambda: sessions.caller(cookie) is None)
    assert watch.within(4)
    assert console.login("thief", "password of thief")["code"] == "IncorrectPasswordError"
    console.sign_in.passwords.by_link(made.url.rpartition("/")[2], "another password")
    until(lambda: console.login("thief", "another password")["status"] == 200)
    assert console.ask("GET", ME.format("thief"), token)["status"] == 401


def test_what_is_over_is_removed(console: Console) -> None:
    uid = console.admin.apply(account("gone"))["metadata"]["uid"]
    console.sign_in.passwords.write("gone", uid, "password of gone")
    console.admin.ask("DELETE", "/api/v1/namespaces/pai-users/serviceaccounts/gone")
    until(lambda: console.sign_in.users.uid("gone") == "")
    console.sign_in.sweep()
    assert console.sign_in.store.find(CredentialKind.PASSWORD, "gone", fresh=True) is None
    assert console.sign_in.store.find(CredentialKind.PASSWORD, "alice", fresh=True) is not None
