"""Every form of the pages, sent as other sites, other users, and old sessions would send it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from pai_install.console.services import ConsoleServices
from tests.integration.console.conftest import HOST, console, own, users
from tests.integration.console.test_cluster_pages import Browser, browser
from tests.integration.console.test_jobs import served
from tests.integration.console.test_pages import ORIGIN, form_of

__all__ = ["browser", "console", "own", "served", "users"]
Served = tuple[ConsoleServices, TestClient]
# of another site, of a file, of a page without TLS, of a name that only looks like the console's
ORIGINS = (None, "null", "https://evil.example.org", f"http://{HOST}", f"https://{HOST}.evil.example.org",
           f"https://{HOST}:444", f"https://{HOST}@evil.example.org", f"https://evil.{HOST}")  # fmt: skip
PLACES = {"name": "alice~train", "user": "bob", "node": "gpu-1", "vc": "default", "secret": "0" * 43}


def forms(web: TestClient) -> Iterator[str]:
    """The path of each route that takes a form. Routes below a mount are the API's, which takes none."""
    for route in web.app.routes:  # type: ignore[attr-defined]
        assert isinstance(route, (Route, Mount))
        if isinstance(route, Route) and "POST" in (route.methods or set()) and "/rest-server" not in route.path:
            yield re.sub(r"\{(\w+)(:\w+)?\}", lambda found: PLACES.get(found[1], "0"), route.path)


def test_there_are_forms(served: Served) -> None:
    found = set(forms(served[1]))
    assert {"/login", "/logout", "/jobs/new", "/account/tokens", "/users"} <= found
    assert len(found) >= 9


def test_every_form_needs_the_token_of_its_own_session(served: Served, browser: Browser) -> None:
    alice, bob = browser("alice"), browser("bob")
    guest = TestClient(served[1].app, base_url=f"https://{HOST}", follow_redirects=False)
    ended = browser("carol")
    old = form_of(ended.get("/account"))
    assert ended.post("/logout", data={"form": old}, headers=ORIGIN).status_code == 303
    tokens = {"none": None, "empty": "", "zero": "0" * 64, "of another": form_of(bob.get("/account")),
              "of a guest": form_of(guest.get("/login")), "of an ended session": old}  # fmt: skip
    wrong = []
    for path in forms(served[1]):
        for name, token in tokens.items():
            answer = alice.post(path, data={} if token is None else {"form": token}, headers=ORIGIN)
            if answer.status_code != 403:
                wrong.append(f"{path}: {name}: {answer.status_code}")
        good = form_of(alice.get("/account"))
        in_address = alice.post(f"{path}?form={good}", headers=ORIGIN)
        if in_address.status_code != 403:
            wrong.append(f"{path}: in the address: {in_address.status_code}")
    assert wrong == []
    assert alice.get("/account").status_code == 200


def test_every_form_comes_from_a_page_of_the_console(served: Served, browser: Browser) -> None:
    alice = browser("alice")
    form = form_of(alice.get("/account"))
    wrong = []
    for path in forms(served[1]):
        for origin in ORIGINS:
            answer = alice.post(path, data={"form": form}, headers={} if origin is None else {"Origin": origin})
            if answer.status_code != 403:
                wrong.append(f"{path}: {origin}: {answer.status_code}")
    assert wrong == []
    assert alice.get("/account").status_code == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_no_other_method_sends_a_form(served: Served, browser: Browser, method: str) -> None:
    alice = browser("alice")
    form = form_of(alice.get("/account"))
    for path in forms(served[1]):
        answer = alice.request(
            method, path, params={"form": form}, headers={**ORIGIN, "X-HTTP-Method-Override": "POST"}
        )
        assert answer.status_code == 405, path


def test_an_address_sends_no_form(served: Served, browser: Browser) -> None:
    """A GET shows a page at most: the session is there afterwards, and so is the job."""
    alice = browser("alice")
    params = {"form": form_of(alice.get("/account")), "_method": "POST", "do": "remove", "name": "bob"}
    for path in forms(served[1]):
        assert alice.get(path, params=params, headers=ORIGIN).status_code in (200, 303, 400, 403, 404, 405), path
    assert alice.get("/account").status_code == 200
    assert alice.get("/jobs/alice~train").status_code == 200
