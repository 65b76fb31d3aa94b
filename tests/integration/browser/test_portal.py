"""OpenPAI's portal 1.8.1 in Chromium. PAI_PORTAL names its folder dist, built as docs/console.md says."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.alerts.conftest import alertmanager, promtool
from tests.integration.browser.driver import driven, person
from tests.integration.browser.machine import NODE, start_job
from tests.integration.browser.measured import HARDWARE, IDLE, IDLE_PERCENT, measured
from tests.integration.browser.portal import portal
from tests.integration.openpai.conftest import Console, Installed, console, console_of, quickstart
from tests.integration.openpai.test_requests_of_clients import VSCODE_JOB
from tests.ports import free_port

__all__ = ["alertmanager", "console", "promtool", "quickstart"]
DIST = os.environ.get("PAI_PORTAL", "")
pytestmark = [pytest.mark.soak, pytest.mark.skipif(not DIST, reason="PAI_PORTAL names no portal of OpenPAI")]
# a member asks for the list of all users
EXPECTED = {"GET /rest-server/api/v2/user 403"}
PEOPLE = {"member": "alice", "administrator": "root"}


@pytest.fixture(scope="module")
def monitored(
    quickstart: Installed, promtool: Path, alertmanager: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Console]:
    """A console with monitoring, and a job that runs on a machine with an idle GPU."""
    with measured(promtool, alertmanager, tmp_path_factory.mktemp("monitoring")) as found:
        settings = {**quickstart.settings, "monitoring": found.model_dump()}
        with console_of(replace(quickstart, settings=settings), tmp_path_factory.mktemp("monitored")) as made:
            roles = {"worker": VSCODE_JOB["taskRoles"]["train"]}
            text = yaml.safe_dump({**VSCODE_JOB, "name": IDLE, "taskRoles": roles})
            status, answer = made.ask("POST", "/api/v2/jobs", made.token("alice"), text, "text/yaml")
            assert status == 202, answer
            start_job(made.admin, free_port(), IDLE)
            yield made


@pytest.fixture(scope="module")
def seen(monitored: Console, console: Console, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the browser found, with the requests that the consoles refused."""
    refused, home = list[str](), tmp_path_factory.mktemp("home")
    people = {who: person(name, monitored.password(name)) for who, name in PEOPLE.items()}
    with portal(Path(DIST), monitored, refused) as url, portal(Path(DIST), console, refused) as unmonitored:
        given = {"url": url, "unmonitored": unmonitored, **people, "idle": IDLE, "node": NODE}
        found = driven("portal.js", given, home, 400)
    return {**found, "refused": refused}


def test_its_form_submits_a_job_and_its_page_stops_it(seen: Any, monitored: Console) -> None:
    path = f"/api/v2/jobs/alice~{seen['job']}"
    status, text = monitored.ask("GET", path, monitored.token("alice"))
    assert status == 200, text
    assert json.loads(text)["jobStatus"]["state"] in ("STOPPING", "STOPPED")


def test_its_pages_show_jobs_users_and_storages(seen: Any) -> None:
    assert seen["job"] in seen["pages"]["/job-list.html"]
    assert "data(1)" in seen["pages"]["/user-profile.html"]
    assert "bob" in seen["pages"]["/user-view.html"]


def test_its_home_shows_administrators_the_idle_gpus_of_jobs(seen: Any) -> None:
    assert f"{IDLE} count: 1 usage: {IDLE_PERCENT:.2f}%" in seen["pages"]["/home.html"]


def test_its_page_hardware_shows_the_load_of_nodes(seen: Any) -> None:
    # a late reading on a busy box lowers a rate
    found = {column: float(text.partition("%")[0]) for column, text in seen["hardware"].items()}
    assert found == pytest.approx(HARDWARE, abs=2)


def test_without_monitoring_its_home_shows_administrators_no_idle_gpus(seen: Any) -> None:
    assert "Running 1" in seen["unmonitored"]
    assert "usage" not in seen["unmonitored"]


def test_no_page_fails(seen: Any) -> None:
    # the form tells nobody that there is no marketplace
    assert [one for one in seen["failures"] if "/submit.html" not in one or "Not Found" not in one] == []
    assert {one for one in seen["refused"] if not one.endswith("/ssh 404")} <= EXPECTED
    assert [one for one in seen["dialogs"] if one.startswith("root")] == []
