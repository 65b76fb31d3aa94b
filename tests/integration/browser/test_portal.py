"""OpenPAI's portal 1.8.1 in Chromium. PAI_PORTAL names its folder dist, built as docs/console.md says."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.integration.browser.driver import driven, person
from tests.integration.browser.portal import portal
from tests.integration.openpai.conftest import Console, console, quickstart

__all__ = ["console", "quickstart"]
DIST = os.environ.get("PAI_PORTAL", "")
pytestmark = pytest.mark.skipif(not DIST, reason="PAI_PORTAL names no portal of OpenPAI")
# the console has neither, and a member asks for the list of all users
EXPECTED = {
    "GET /prometheus/api/v1/query 501",
    "GET /marketplace/api/items 404",
    "GET /rest-server/api/v2/user 403",
}


@pytest.fixture(scope="module")
def seen(console: Console, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the browser found, with the requests that the console refused."""
    refused, home = list[str](), tmp_path_factory.mktemp("home")
    people = {who: person(name, console.password(name)) for who, name in PEOPLE.items()}
    with portal(Path(DIST), console, refused) as url:
        found = driven("portal.js", {"url": url, **people}, home, 400)
    return {**found, "refused": refused}


PEOPLE = {"member": "alice", "administrator": "root"}


def test_its_form_submits_a_job_and_its_page_stops_it(seen: Any, console: Console) -> None:
    path = f"/api/v2/jobs/alice~{seen['job']}"
    status, text = console.ask("GET", path, console.token("alice"))
    assert status == 200, text
    assert json.loads(text)["jobStatus"]["state"] in ("STOPPING", "STOPPED")


def test_its_pages_show_jobs_users_and_storages(seen: Any) -> None:
    assert seen["job"] in seen["pages"]["/job-list.html"]
    assert "data(1)" in seen["pages"]["/user-profile.html"]
    assert "bob" in seen["pages"]["/user-view.html"]


def test_no_page_fails(seen: Any) -> None:
    # the form tells nobody that there is no marketplace
    assert [one for one in seen["failures"] if "/submit.html" not in one or "Not Found" not in one] == []
    assert {one for one in seen["refused"] if not one.endswith("/ssh 404")} <= EXPECTED
