"""Pages of sign-in in a browser without scripts, and what other sites try with them."""

from __future__ import annotations

import html
import re
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from pai_install.app.users import password_link
from pai_install.console.errors import RestError
from pai_install.console.sign_in.sessions import COOKIE
from pai_install.users.credentials import CredentialKind, fingerprint
from tests.integration.clients import http_client
from tests.integration.console.conftest import HOST, PASSWORDS, Console
from tests.integration.users.conftest import Users

ORIGIN = {"Origin": f"https://{HOST}"}


def form_of(page: Any) -> str:
    """The token of the form."""
    found = re.search(r'name="form" value="([0-9a-f]{64})"', page.text)
    assert found is not None
    return found.group(1)


def signed_in(console: Console, name: str, target: str = "/") -> tuple[TestClient, Any]:
    """A browser after the sign-in, and the last answer."""
    browser = console.new()
    page = browser.get("/login", params={"from": target})
    body = {"form": form_of(page), "from": target, "username": name, "password": PASSWORDS[name]}
    return browser, browser.post("/login", data=body, headers=ORIGIN)


def test_a_person_signs_in_and_out(console: Console) -> None:
    browser, answer = signed_in(console, "alice", "/jobs?state=RUNNING")
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs?state=RUNNING")
    cookie = next(one for one in answer.headers.get_list("set-cookie") if one.startswith(f"{COOKIE}="))
    assert {"Secure", "HttpOnly", "SameSite=lax", "Path=/"} <= set(cookie.split("; "))
    assert "Domain" not in cookie
    value = browser.cookies[COOKIE]
    caller = console.sign_in.sessions.caller(value)
    assert caller is not None
    assert caller.label == "alice"
    again = browser.get("/login")
    assert (again.status_code, again.headers["location"]) == (303, "/")
    form = fingerprint(f"form:{value}")
    assert browser.post("/logout", data={"form": form}, headers=ORIGIN).headers["location"] == "/login"
    assert console.sign_in.sessions.caller(value) is None


def test_a_wrong_password_shows_the_form_again(console: Console) -> None:
    browser = console.new()
    page = browser.get("/login")
    evil = '"><script>alert(1)</script>'
    body = {"form": form_of(page), "username": evil, "password": "wrong password", "from": "//evil.example.org"}
    answer = browser.post("/login", data=body, headers=ORIGIN)
    assert answer.status_code == 400
    assert "<script" not in answer.text
    assert html.escape(evil, quote=True).replace("&quot;", "&#34;") in answer.text.replace("&#39;", "'")
    assert 'name="from" value="/"' in answer.text


@pytest.mark.parametrize("token", ["bare", "kubeconfig"])
def test_a_kubeconfig_signs_in(console: Console, users: Users, token: str) -> None:
    text = users.tokens["carol"]["status"]["token"]
    if token == "kubeconfig":
        text = f"apiVersion: v1\nkind: Config\nusers:\n- name: carol\n  user:\n    token: {text}\n"
    browser = console.new()
    page = browser.get("/login")
    answer = browser.post("/login/token", data={"form": form_of(page), "token": text, "from": "/"}, headers=ORIGIN)
    assert answer.status_code == 303
    caller = console.sign_in.sessions.caller(browser.cookies[COOKIE])
    assert caller is not None
    assert (caller.label, caller.bearer != "") == ("carol", True)


def test_the_token_of_an_administrator_of_the_cluster_is_no_user(console: Console) -> None:
    browser = console.new()
    page = browser.get("/login")
    body = {"form": form_of(page), "token": "admin-token", "from": "/"}
    assert browser.post("/login/token", data=body, headers=ORIGIN).status_code == 401


FORMS = ("/login", "/login/token", "/logout", "/allow")


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize("origin", ["https://evil.example.org", "null", f"http://{HOST}", f"https://{HOST}.evil", ""])
def test_another_site_sends_no_form(console: Console, path: str, origin: str) -> None:
    browser, _ = signed_in(console, "alice")
    value = browser.cookies[COOKIE]
    body = {"form": fingerprint(f"form:{value}"), "username": "alice", "password": PASSWORDS["alice"], "token": "x"}
    headers = {"Origin": origin} if origin else {}
    assert browser.post(path, data=body, headers=headers).status_code == 403
    assert console.sign_in.sessions.caller(value) is not None


@pytest.mark.parametrize(("origin", "status"), [(f"https://{HOST}:9286", 303), (f"https://{HOST}:8444", 403)])
def test_a_form_is_sent_to_the_port_of_its_page(console: Console, origin: str, status: int) -> None:
    """As of `legacy-ports`, and behind a load balancer. Web pages of jobs are at another port of the same name."""
    browser = console.new()
    there = {"Host": f"{HOST}:9286"}
    form = form_of(browser.get("/login", headers=there))
    body = {"form": form, "username": "alice", "password": PASSWORDS["alice"], "from": "/"}
    assert browser.post("/login", data=body, headers={**there, "Origin": origin}).status_code == status


@pytest.mark.parametrize("path", FORMS)
def test_a_form_needs_the_token_of_its_browser(console: Console, path: str) -> None:
    mine, _ = signed_in(console, "alice")
    other, _ = signed_in(console, "bob")
    for form in ("", "x", fingerprint(f"form:{other.cookies[COOKIE]}"), fingerprint(mine.cookies[COOKIE])):
        assert mine.post(path, data={"form": form}, headers=ORIGIN).status_code == 403


def test_a_session_that_the_browser_brings_is_never_used(console: Console) -> None:
    """Session fixation: somebody plants a cookie, and waits for the sign-in."""
    planted, _ = signed_in(console, "bob")
    known = planted.cookies[COOKIE]
    browser = console.new()
    page = browser.get("/login")
    browser.cookies.set(COOKIE, "a-value-that-somebody-knows", domain=HOST)
    body = {"form": form_of(page), "username": "alice", "password": PASSWORDS["alice"], "from": "/"}
    answer = browser.post("/login", data=body, headers=ORIGIN)
    assert answer.status_code == 303
    fresh = next(one for one in answer.headers.get_list("set-cookie") if one.startswith(f"{COOKIE}="))
    value = fresh.partition("=")[2].partition(";")[0]
    assert value not in ("a-value-that-somebody-knows", known)
    assert console.sign_in.sessions.caller("a-value-that-somebody-knows") is None


def test_a_session_ends_without_use_and_after_a_week(console: Console) -> None:
    browser, _ = signed_in(console, "alice")
    key = fingerprint(browser.cookies[COOKIE])
    later = replace(console.sign_in.sessions, now=lambda: datetime.now(UTC) + timedelta(hours=9))
    assert later.caller_of(key) is None
    kept = console.sign_in.store.find(CredentialKind.SESSION, key)
    assert kept is not None
    assert kept.until is not None
    assert timedelta(days=6) < kept.until - datetime.now(UTC) <= timedelta(days=7)


def test_a_link_sets_a_password_once(console: Console) -> None:
    administrator = http_client(console.admin)
    old = password_link(administrator, "carol", f"https://{HOST}", timedelta(hours=1))
    made = password_link(administrator, "carol", f"https://{HOST}/", timedelta(hours=1))
    secret = made.url.rpartition("/")[2]
    assert made.url == f"https://{HOST}/password/{secret}"
    assert console.new().get(f"/password/{old.url.rpartition('/')[2]}").status_code == 400
    browser = console.new()
    page = browser.get(f"/password/{secret}")
    assert page.status_code == 200
    body = {"form": form_of(page), "password": "a new password", "again": "a new password"}
    assert browser.post(f"/password/{secret}", data={**body, "again": "x"}, headers=ORIGIN).status_code == 400
    assert browser.post(f"/password/{secret}", data=body, headers={"Origin": "https://evil"}).status_code == 403
    assert browser.post(f"/password/{secret}", data=body, headers=ORIGIN).status_code == 200
    assert console.login("carol", "a new password")["status"] == 200
    assert browser.get(f"/password/{secret}").status_code == 400
    assert browser.post(f"/password/{secret}", data=body, headers=ORIGIN).status_code in (400, 403)


@pytest.mark.parametrize("secret", ["x", "..%2f..%2fsigning", "a" * 5000, "%00"])
def test_a_link_that_nobody_made(console: Console, secret: str) -> None:
    assert console.new().get(f"/password/{secret}").status_code in (400, 404)


@pytest.mark.parametrize("host", ["evil.example.org", f"{HOST}.evil", "", "127.0.0.1", f"{HOST}@evil", "10.0.0.1:x"])
def test_a_foreign_host_name_is_refused(console: Console, host: str) -> None:
    for path in ("/login", "/rest-server/api/v2/info"):
        assert console.new().get(path, headers={"Host": host}).status_code == 400


def test_names_of_the_console_count_with_and_without_a_port(console: Console) -> None:
    for host in (HOST, HOST.upper(), f"{HOST}:443", "10.0.0.1"):
        assert console.new().get("/login", headers={"Host": host}).status_code == 200
    assert console.new().get("/healthz", headers={"Host": "192.0.2.7"}).status_code == 200


def test_pages_have_headers_against_other_sites(console: Console) -> None:
    page = console.new().get("/login")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "same-origin"
    assert page.headers["cache-control"] == "no-store"
    assert "<script" not in page.text
    assert "access-control-allow-origin" not in page.headers


def test_the_api_is_for_pages_of_others_without_credentials(console: Console) -> None:
    answer = console.new().options(
        "/rest-server/api/v2/users",
        headers={"Origin": "https://portal.example.org", "Access-Control-Request-Method": "GET"},
    )
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers


def test_a_link_that_is_sent_twice_at_once_counts_once(console: Console) -> None:
    made = password_link(http_client(console.admin), "bob", f"https://{HOST}", timedelta(hours=1))
    secret, found = made.url.rpartition("/")[2], []

    def use(number: int) -> None:
        try:
            found.append(console.sign_in.passwords.by_link(secret, f"password number {number}"))
        except RestError as error:
            found.append(error.code)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(found) == ["InvalidParametersError"] * 3 + ["bob"]
