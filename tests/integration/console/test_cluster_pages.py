"""Pages of the cluster on a real API server: as their person, with the console's own rights."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from pai_install.console.pages.rendering import MENU
from pai_install.console.services import ConsoleServices
from pai_install.report.run_history import RunSummary, with_run
from tests.integration.console.conftest import HOST, PASSWORDS, Console, console, own, users
from tests.integration.console.test_jobs import FILE, JOBS, served, until_listed
from tests.integration.console.test_pages import ORIGIN, form_of

__all__ = ["console", "own", "served", "users"]
Browser = Callable[[str], TestClient]


@pytest.fixture(scope="module")
def browser(served: tuple[ConsoleServices, TestClient], console: Console) -> Browser:
    """Browsers of people after their sign-in, and a job of alice."""
    _, web = served
    headers = {"Authorization": f"Bearer {console.token('alice', PASSWORDS['alice'])}", "Content-Type": "text/yaml"}
    assert web.post(JOBS, content=FILE, headers=headers).status_code in (202, 409)
    until_listed(web, headers, "train")
    found: dict[str, TestClient] = {}

    def of(name: str) -> TestClient:
        if name not in found:
            made = TestClient(web.app, base_url=f"https://{HOST}", follow_redirects=False)
            body = {"form": form_of(made.get("/login")), "from": "/", "username": name, "password": PASSWORDS[name]}
            assert made.post("/login", data=body, headers=ORIGIN).status_code == 303
            found[name] = made
        return found[name]

    return of


@pytest.mark.parametrize("path", [path for _, path, _ in MENU])
@pytest.mark.parametrize("who", ["alice", "carol", "dora"])
def test_every_page_is_for_its_people(browser: Browser, who: str, path: str) -> None:
    only = {address: administrators for _, address, administrators in MENU}
    answer = browser(who).get(path)
    assert answer.status_code == (403 if only[path] and who != "dora" else 200), answer.text
    assert len(answer.text) < 300 * 1024
    assert not re.search(r"<script|(?:src|href|action)=\"(?:https?:)?//", answer.text)


def test_without_a_session_no_page_answers(served: tuple[ConsoleServices, TestClient]) -> None:
    _, web = served
    made = TestClient(web.app, base_url=f"https://{HOST}", follow_redirects=False)
    for path in (*(path for _, path, _ in MENU), "/virtual-clusters/default"):
        answer = made.get(path)
        assert (answer.status_code, answer.headers["location"][:12]) == (303, "/login?from="), path


def test_a_waiting_job_shows_its_quota_to_its_group_alone(browser: Browser) -> None:
    for who in ("alice", "bob"):
        page = browser(who).get("/jobs/alice~train").text
        assert 'id="why"' in page
        assert "Quota of default" in page, page
    assert browser("carol").get("/jobs/alice~train").status_code == 404
    for path in ("/virtual-clusters", "/virtual-clusters/default"):
        assert "train" not in browser("carol").get(path).text


def test_a_new_job_is_checked_and_submitted_as_its_person(browser: Browser) -> None:
    alice = browser("alice")
    content = FILE.replace("name: train", "name: from-a-form")
    body = {"form": form_of(alice.get("/jobs/new")), "content": content}
    page = alice.post("/jobs/new", data={**body, "do": "check"}, headers=ORIGIN)
    assert page.status_code == 200
    assert 'value="submit"' in page.text, page.text
    assert alice.get("/jobs/alice~from-a-form").status_code == 404
    assert alice.post("/jobs/new", data={**body, "do": "submit"}, headers={"Origin": "https://evil"}).status_code == 403
    sent = alice.post("/jobs/new", data={**body, "do": "submit"}, headers=ORIGIN)
    assert (sent.status_code, sent.headers["location"]) == (303, "/jobs/alice~from-a-form"), sent.text
    assert alice.get("/jobs/alice~from-a-form").status_code == 200
    assert browser("carol").get("/jobs/alice~from-a-form").status_code == 404


def test_a_job_that_a_policy_forbids_is_told_before_its_submission(browser: Browser) -> None:
    alice = browser("alice")
    pod = "{hostNetwork: true, restartPolicy: Never, containers: [{name: main, image: none}]}"
    content = f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: evil}}\nspec: {{template: {{spec: {pod}}}}}\n"
    body = {"form": form_of(alice.get("/jobs/new")), "content": content, "do": "check"}
    page = alice.post("/jobs/new", data=body, headers=ORIGIN).text
    assert "hostNetwork" in page
    assert 'value="submit"' not in page


def test_runs_of_the_controller_host_are_for_administrators(browser: Browser, console: Console) -> None:
    """The console reads them with its own rights. Members cannot."""
    console.admin.apply(dict(with_run(None, RunSummary(run="20261127T013428Z", verb="node add", exit_code=6))))
    assert "node add" in browser("dora").get("/runs").text
    for who in ("alice", "carol"):
        answer = browser(who).get("/runs")
        assert answer.status_code == 403
        assert "node add" not in answer.text
