"""Templates over the console on a real API server: saved, used, and published as their user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from starlette.testclient import TestClient

from pai_install.console.server import create_app
from tests.integration.console.conftest import HOST, PASSWORDS, Console, console, own, users
from tests.integration.console.test_jobs import FILE, Served, served
from tests.integration.console.test_pages import ORIGIN, form_of
from tests.integration.users.conftest import Users

__all__ = ["console", "own", "served", "users"]
NEW = {"title": "batch", "group": "vision", "content": FILE, "description": "A batch Job", "tags": "cpu"}


@dataclass(frozen=True)
class Browser:
    """A browser with a session."""

    web: TestClient

    def get(self, path: str) -> Any:
        return self.web.get(path)

    def post(self, path: str, page: str, **form: str) -> Any:
        """Sends the form of a page."""
        return self.web.post(path, data={"form": form_of(self.get(page)), **form}, headers=ORIGIN)


def browser(served: Served, console: Console, name: str) -> Browser:
    web = TestClient(create_app(console.settings, served[0]), base_url=f"https://{HOST}", follow_redirects=False)
    made = Browser(web)
    body = {"from": "/", "username": name, "password": PASSWORDS[name]}
    assert made.post("/login", "/login", **body).status_code == 303
    return made


@pytest.fixture(scope="module")
def saved(served: Served, console: Console, users: Users) -> Browser:
    """alice, who has saved a template."""
    alice = browser(served, console, "alice")
    answer = alice.post("/templates", "/templates/new", **NEW)
    assert answer.status_code == 303, answer.text
    return alice


def test_a_template_from_save_to_job(served: Served, console: Console, saved: Browser) -> None:
    assert "/templates/batch?group=vision" in saved.get("/templates?search=batch").text
    page = "/templates/batch?group=vision"
    checked = saved.post(page, page, do="check")
    assert 'value="submit"' in checked.text, checked.text
    answer = saved.post(page, page, do="submit")
    assert answer.headers["location"] == "/jobs/alice~train", answer.text
    again = saved.post("/templates", "/templates/new", **{**NEW, "description": "Changed"})
    assert again.status_code == 303
    assert "Changed" in saved.get("/templates").text


def test_it_is_of_its_group_and_its_owner(served: Served, console: Console, saved: Browser) -> None:
    carol, bob = browser(served, console, "carol"), browser(served, console, "bob")
    page = "/templates/batch?group=vision"
    assert "batch" not in carol.get("/templates").text
    assert carol.get(page).status_code == 403
    assert bob.get(page).status_code == 200
    assert bob.post(page, page, do="remove").status_code == 403
    assert bob.post(page, page, do="publish").status_code == 403
    assert saved.get(page).status_code == 200


def test_an_administrator_publishes(served: Served, console: Console, saved: Browser) -> None:
    dora = browser(served, console, "dora")
    mine = {**NEW, "group": "speech", "title": "shared"}
    assert dora.post("/templates", "/templates/new", **mine).status_code == 303
    page = "/templates/shared?group=speech"
    answer = dora.post(page, page, do="publish")
    assert answer.headers["location"] == "/templates/shared", answer.text
    assert "/templates/shared" in saved.get("/templates").text
    assert saved.post("/templates/shared", "/templates/shared", do="remove").status_code == 403
    assert dora.post("/templates/shared", "/templates/shared", do="remove").status_code == 303
    assert "/templates/shared" not in saved.get("/templates").text
