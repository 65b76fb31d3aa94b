"""Pages of users and of one's own account on a real API server, which decides on every change."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from pai_install.console.services import ConsoleServices
from tests.integration.console.conftest import HOST, PASSWORDS, console, own, users
from tests.integration.console.test_cluster_pages import Browser, browser
from tests.integration.console.test_jobs import served
from tests.integration.console.test_pages import ORIGIN, form_of
from tests.waiting import until

__all__ = ["browser", "console", "own", "served", "users"]
PASSWORD = "a password of newbie"
EVIL = "<script>alert(1)</script>"


def send(web: TestClient, page: str, path: str, origin: str = f"https://{HOST}", /, **fields: str) -> Any:
    """Sends a form of a page."""
    form = form_of(web.get(page))
    return web.post(path, data={"form": form, **fields}, headers={"Origin": origin})


def sign_in(served: tuple[ConsoleServices, TestClient], name: str, password: str) -> TestClient | None:
    """A browser of a person, None after a refusal."""
    made = TestClient(served[1].app, base_url=f"https://{HOST}", follow_redirects=False)
    body = {"form": form_of(made.get("/login")), "from": "/", "username": name, "password": password}
    return made if made.post("/login", data=body, headers=ORIGIN).status_code == 303 else None


@pytest.fixture
def newbie(served: tuple[ConsoleServices, TestClient], browser: Browser) -> Iterator[TestClient]:
    """A browser of a user whom an administrator has just made on the page."""
    admin = browser("dora")
    fields = {"username": "newbie", "password": PASSWORD, "email": "n@example.org", "group.vision": "yes"}
    answer = send(admin, "/users", "/users", **fields)
    assert (answer.status_code, answer.headers["location"]) == (303, "/users/newbie"), answer.text
    made = sign_in(served, "newbie", PASSWORD)
    assert made is not None
    until(lambda: "vision" in made.get("/account").text, 60)
    yield made
    send(admin, "/users", "/users/newbie", do="remove", name="newbie")
    # the next test makes an account of this name
    sign_ins = served[0].sign_in
    assert sign_ins is not None
    until(lambda: not sign_ins.users.uid("newbie"))


def test_an_administrator_makes_a_user(newbie: TestClient, browser: Browser) -> None:
    assert 'href="/users/newbie"' in browser("dora").get("/users").text
    page = browser("dora").get("/users/newbie").text
    assert "n@example.org" in page
    assert re.search(r'name="group.vision" value="yes" checked', page)
    assert newbie.get("/").status_code == 200


# a text of a member that others see: in pages, in JSON, and in what they make of it
EMAILS = {
    "script": (EVIL, 201),
    "attribute": ('" onmouseover="alert(1)', 201),
    "formula": ('=HYPERLINK("https://evil.example.org")', 201),
    "template": ("{{ 7 * 7 }}{% raw %}", 201),
    "query": ('a\'} or {__name__=~".+"} | delete', 201),
    "turned": ("a\u202eb@example.org", 400),
    "hidden": ("a\u200bb@example.org", 400),
    "terminal": ("\x1b[2Ja@example.org", 400),
    "lines": ("a@example.org\r\nBcc: all@example.org", 400),
    "long": ("a" * 255, 400),
    "half": ("\ud800", 400),
}


@pytest.mark.parametrize("name", EMAILS)
def test_a_hostile_email_is_text_wherever_it_is_shown(
    newbie: TestClient, browser: Browser, served: tuple[ConsoleServices, TestClient], name: str
) -> None:
    email, status = EMAILS[name]
    web = TestClient(served[1].app, base_url=f"https://{HOST}")
    api = "/rest-server/api/v2"

    def token(user: str, password: str) -> dict[str, str]:
        found = web.post(f"{api}/authn/basic/login", data={"username": user, "password": password}).json()
        return {"Authorization": f"Bearer {found['token']}"}

    own, admin = token("newbie", PASSWORD), token("dora", PASSWORDS["dora"])
    body = json.dumps({"email": email})
    answer = web.put(f"{api}/users/newbie/email", content=body, headers={**own, "Content-Type": "application/json"})
    assert answer.status_code == status, answer.text
    for path in ("/users", "/users/newbie"):
        page = browser("dora").get(path).text
        assert EVIL not in page
        assert '" onmouseover="' not in page
        assert "49" not in re.findall(r"<dd>(49)", page)
        assert page.isprintable() or set(re.findall(r"[^\x20-\x7e]", page)).isdisjoint("\u202e\u200b\x1b\r")
    found = web.get(f"{api}/users", headers=admin)
    assert found.headers["content-type"].startswith("application/json")
    assert found.headers["x-content-type-options"] == "nosniff"
    (kept,) = [one["email"] for one in found.json() if one["username"] == "newbie"]
    assert (kept == email) == (status == 201)


def test_groups_of_a_user_change(newbie: TestClient, browser: Browser) -> None:
    admin = browser("dora")
    answer = send(admin, "/users/newbie", "/users/newbie", do="groups", **{"group.speech": "yes"})
    assert answer.status_code == 303, answer.text
    page = admin.get("/users/newbie").text
    assert re.search(r'name="group.speech" value="yes" checked', page)
    assert not re.search(r'name="group.vision" value="yes" checked', page)
    until(lambda: "<dd>speech</dd>" in newbie.get("/account").text, 60)


def test_a_new_password_ends_sessions(
    newbie: TestClient, browser: Browser, served: tuple[ConsoleServices, TestClient]
) -> None:
    admin = browser("dora")
    assert send(admin, "/users/newbie", "/users/newbie", do="password", password="short").status_code == 400
    assert newbie.get("/account").status_code == 200
    assert send(admin, "/users/newbie", "/users/newbie", do="password", password="another password").status_code == 303
    until(lambda: newbie.get("/account").status_code == 303, 60)
    assert sign_in(served, "newbie", PASSWORD) is None
    assert sign_in(served, "newbie", "another password") is not None


def test_a_user_is_removed_by_its_typed_name(
    newbie: TestClient, browser: Browser, served: tuple[ConsoleServices, TestClient]
) -> None:
    admin = browser("dora")
    for name in ("", "alice", "Newbie"):
        assert send(admin, "/users/newbie", "/users/newbie", do="remove", name=name).status_code == 400
    assert send(admin, "/users/newbie", "/users/newbie", do="remove", name="newbie").status_code == 303
    assert admin.get("/users/newbie").status_code == 404
    until(lambda: newbie.get("/account").status_code == 303, 60)
    assert sign_in(served, "newbie", PASSWORD) is None
    # administrators leave their group first
    assert send(admin, "/users", "/users/dora", do="remove", name="dora").status_code == 403


def test_a_person_changes_the_password(newbie: TestClient, served: tuple[ConsoleServices, TestClient]) -> None:
    new = {"password": "my own password", "again": "my own password"}
    wrong = send(newbie, "/account", "/account/password", old="wrong", **new)
    assert wrong.status_code == 400
    assert "Password is incorrect" in wrong.text
    assert send(newbie, "/account", "/account/password", old=PASSWORD, password="x" * 12, again="y").status_code == 400
    assert send(newbie, "/account", "/account/password", old=PASSWORD, **new).status_code == 303
    until(lambda: newbie.get("/account").status_code == 303, 60)
    assert sign_in(served, "newbie", "my own password") is not None


def test_tokens_are_shown_once_and_revoked(browser: Browser, served: tuple[ConsoleServices, TestClient]) -> None:
    alice, web = browser("alice"), served[1]
    made = send(alice, "/account", "/account/tokens")
    found = re.search(r'<pre class="token">([^<]+)</pre>', made.text)
    assert found is not None
    headers = {"Authorization": f"Bearer {html.unescape(found[1])}"}
    assert web.get("/rest-server/api/v2/tokens/check", headers=headers).status_code == 200
    page = alice.get("/account").text
    assert found[1] not in page
    text = re.search(r'name="token" value="([^"]+)"', page)
    assert text is not None
    assert html.unescape(text[1]).endswith(".")
    assert send(browser("bob"), "/account", "/account/tokens/revoke", token=html.unescape(text[1])).status_code == 403
    assert web.get("/rest-server/api/v2/tokens/check", headers=headers).status_code == 200
    assert send(alice, "/account", "/account/tokens/revoke", token=html.unescape(text[1])).status_code == 303
    until(lambda: web.get("/rest-server/api/v2/tokens/check", headers=headers).status_code == 401, 60)


FORMS = (
    ("/users", {"username": "evil", "password": PASSWORD, "group.ops": "yes"}),
    ("/users/bob", {"do": "password", "password": PASSWORD}),
    ("/users/bob", {"do": "groups", "group.ops": "yes"}),
    ("/users/bob", {"do": "remove", "name": "bob"}),
)


@pytest.mark.parametrize(("path", "fields"), FORMS)
def test_a_member_changes_no_user(
    browser: Browser, served: tuple[ConsoleServices, TestClient], path: str, fields: dict[str, str]
) -> None:
    alice = browser("alice")
    assert send(alice, "/account", path, **fields).status_code == 403
    assert alice.get("/users/bob").status_code == 403
    assert sign_in(served, "bob", PASSWORDS["bob"]) is not None
    assert sign_in(served, "evil", PASSWORD) is None


@pytest.mark.parametrize(
    ("path", "fields"), [*FORMS, ("/account/password", {}), ("/account/tokens", {}), ("/account/tokens/revoke", {})]
)
@pytest.mark.parametrize("origin", ["https://evil.example.org", "null", ""])
def test_other_sites_send_no_form(browser: Browser, path: str, fields: dict[str, str], origin: str) -> None:
    assert send(browser("dora"), "/account", path, origin, **fields).status_code == 403
    token = {"form": "0" * 64, **fields}
    assert browser("dora").post(path, data=token, headers=ORIGIN).status_code == 403


def test_a_member_sees_the_own_groups(browser: Browser) -> None:
    page = browser("carol").get("/users").text
    assert "speech" in page
    assert "vision" not in page
    assert "alice" not in page
    assert 'action="/users"' not in page


@pytest.mark.parametrize("name", [EVIL, "", "a/b", "x" * 5000, "\x00", "system:admin", "../alice"])
def test_names_that_are_none(browser: Browser, name: str) -> None:
    answer = send(browser("dora"), "/users", "/users", username=name, password=PASSWORD)
    assert answer.status_code == 400
    assert EVIL not in answer.text
