"""The first hour on the quickstart's site: the first user, a password by the link, and the page of the first job."""

from __future__ import annotations

import ssl
from typing import Any
from urllib.parse import urlsplit

import pytest

from pai_install.app.context import App
from pai_install.app.first_access import give_first_access
from pai_install.cli.quickstart import GROUP, JOB, JOB_FILE
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode
from pai_install.report.quickstart import FirstAccess
from tests.e2e.notebook_client import NotebookBrowser
from tests.integration.clients import http_client
from tests.integration.openpai.conftest import Console
from tests.unit.cli.conftest import in_world
from tests.unit.cli.stub_environment import World, run

__all__ = ["in_world"]


@pytest.fixture
def world(console: Console, in_world: Any, monkeypatch: pytest.MonkeyPatch) -> World:
    """The command line of ada on the cluster's API server."""
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    api: Any = http_client(console.admin)
    made: World = in_world(World(api=api))
    return made


def first_access(console: Console, world: World) -> FirstAccess:
    with Terminal(yes=True) as terminal, App(console.folder / "site", world, terminal) as app:
        return give_first_access(app, GROUP)


def test_the_link_sets_a_password_and_the_page_shows_the_job(console: Console, world: World) -> None:
    earlier, access = (first_access(console, world) for _ in range(2))
    assert earlier.sign_in is not None
    assert access.sign_in is not None
    site = console.folder / "site"
    words = ["job", "submit", str(site / JOB_FILE), "--site", str(site), "--group", GROUP, "--user", access.user]
    assert run(words) == ExitCode.OK
    trust = ssl.create_default_context(cafile=str(console.authority))
    browser = NotebookBrowser(urlsplit(console.url).netloc, trust)
    # the address of the site's control plane, which is none of this host
    here = {one.url: f"{console.url}{urlsplit(one.url).path}" for one in (earlier.sign_in, access.sign_in)}
    assert browser.ask("GET", here[earlier.sign_in.url]).status_code == 400, "a further link ends the one before"
    browser.set_password(here[access.sign_in.url], "a password of one's own")
    browser.sign_in(access.user, "a password of one's own")
    job = access.job(JOB, GROUP)
    assert job.url == f"https://172.30.75.11/jobs/ada~{JOB}"
    page = browser.ask("GET", f"{console.url}{urlsplit(job.url).path}")
    assert (page.status_code, f"<h1>{JOB}</h1>" in page.text) == (200, True), page.text
    assert browser.ask("GET", f"{console.url}/users").status_code == 200, "an administrator"
