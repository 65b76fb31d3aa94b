"""Pages of jobs: for people with a session, escaped, and without scripts."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from http import HTTPStatus

import pytest
from starlette.testclient import TestClient
from syrupy.assertion import SnapshotAssertion

from pai_install.console.pages.rendering import duration
from pai_install.console.services import ConsoleServices
from pai_install.console.sign_in.forms import form_token
from pai_install.console.sign_in.sessions import COOKIE
from pai_install.kube.model import Ref
from tests.unit.console.conftest import eventually, signed_in
from tests.unit.console.live import LiveCluster
from tests.unit.console.routes.test_jobs import FILE, job_of, named, pod, post, record, train

__all__ = ["train"]
EVIL = "<script>alert(1)</script>"


def shown(web: TestClient, path: str, who: str = "alice") -> str:
    answer = web.get(path, headers=signed_in(who))
    assert answer.status_code == HTTPStatus.OK, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    return answer.text


@pytest.mark.parametrize("path", ["/jobs", "/jobs/alice~train", "/jobs?state=RUNNING&vc=default"])
def test_a_browser_without_a_session_signs_in_and_comes_back(web: TestClient, path: str) -> None:
    answer = web.get(path)
    assert answer.status_code == HTTPStatus.SEE_OTHER
    target = answer.headers["location"]
    assert target.startswith("/login?from=%2Fjobs")
    assert "&" not in target.removeprefix("/login?from=")


def test_the_list(train: TestClient, snapshot: SnapshotAssertion) -> None:
    page = shown(train, "/jobs")
    assert '<a href="/jobs/alice~train">train</a>' in page
    assert "1 to 1 of 1 jobs" in page
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>|\d+ d|\d+:\d\d", " ", page))
    assert text == snapshot


def test_filters_are_in_the_address(train: TestClient) -> None:
    page = shown(train, "/jobs?state=FAILED&keyword=%22%3E%3Cscript%3E")
    assert "no jobs" in page
    assert '<option value="FAILED" selected>' in page
    assert "<script>" not in page


def test_a_long_list_has_pages(web: TestClient, services: ConsoleServices) -> None:
    services.rates.rates["submit"] = (1000, 1.0)
    for number in range(101):
        assert post(web, "alice", named(FILE, f"job{number}")).status_code == HTTPStatus.ACCEPTED
    eventually(lambda: len(services.model.jobs) == 101)
    page = shown(web, "/jobs?username=alice")
    assert 'href="/jobs?username=alice&amp;offset=100" rel="next"' in page
    assert 'rel="prev"' in shown(web, "/jobs?username=alice&offset=100")


def test_a_job(train: TestClient, kubernetes: LiveCluster) -> None:
    pod(kubernetes, 0)
    page = shown(train, "/jobs/alice~train")
    assert "python train.py" in page
    assert 'href="/jobs/alice~train/log/worker/0"' in page


def stopping(web: TestClient, who: str, form: str, origin: str = "https://testserver") -> int:
    cookies = {"Cookie": f"{COOKIE}=a-session", "Origin": origin}
    answer = web.post("/jobs/alice~train/stop", data={"form": form}, headers={**signed_in(who), **cookies})
    return answer.status_code


def test_a_job_is_stopped_by_its_page(train: TestClient, kubernetes: LiveCluster) -> None:
    answer = train.get("/jobs/alice~train", headers={**signed_in("alice"), "Cookie": f"{COOKIE}=a-session"})
    form = re.search(r'action="/jobs/alice~train/stop">\s*<input type="hidden" name="form" value="(\w+)"', answer.text)
    assert form is not None
    assert form[1] == form_token("a-session")
    assert "/stop" not in shown(train, "/jobs/alice~train", "carol")
    for who, token, origin, status in [
        ("alice", "", "https://testserver", 403),
        ("alice", form_token("another"), "https://testserver", 403),
        ("alice", form[1], "https://evil.example.com", 403),
        ("bob", form[1], "https://testserver", 404),
        ("carol", form[1], "https://testserver", 403),
        ("no-one", form[1], "https://testserver", 403),
    ]:
        assert stopping(train, who, token, origin) == status, (who, origin)
    assert job_of(kubernetes)
    assert stopping(train, "alice", form[1]) == HTTPStatus.SEE_OTHER
    assert Ref("jobset", "train", "vision-1") not in kubernetes.objects


def test_a_deleted_job(train: TestClient, kubernetes: LiveCluster) -> None:
    record(kubernetes)
    eventually(lambda: "stopped by alice" in train.get("/jobs/alice~train", headers=signed_in("alice")).text)


@pytest.mark.parametrize(("who", "status"), [("bob", 404), ("dan", 404), ("root", 200), ("carol", 200)])
def test_a_job_is_for_its_group(train: TestClient, who: str, status: int) -> None:
    answer = train.get("/jobs/alice~train", headers=signed_in(who))
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/html")


def test_what_users_write_is_escaped(train: TestClient, kubernetes: LiveCluster) -> None:
    made = job_of(kubernetes)
    notes = {
        **made["metadata"]["annotations"],
        "pai-install/job-name": EVIL,
        "pai-install/tags": f'{{"tags": ["{EVIL}"]}}',
    }
    failed = {"type": "Failed", "status": "True", "message": EVIL}
    kubernetes.put({**made, "metadata": {**made["metadata"], "annotations": notes}, "status": {"conditions": [failed]}})
    eventually(lambda: "alert(1)" in shown(train, "/jobs"))
    for path in ("/jobs", "/jobs/alice~train"):
        page = shown(train, path)
        assert EVIL not in page
        assert "&lt;script&gt;" in page


def test_text_that_hides_or_turns_others_is_shown_as_its_number(train: TestClient, kubernetes: LiveCluster) -> None:
    made = job_of(kubernetes)
    turned = "rm -rf \u202e/data\u200b\x1b[2K"
    failed = {"type": "Failed", "status": "True", "message": turned}
    kubernetes.put({**made, "status": {"conditions": [failed]}})
    eventually(lambda: "rm -rf" in shown(train, "/jobs/alice~train"))
    page = shown(train, "/jobs/alice~train")
    assert r"rm -rf \u202e/data\u200b\u001b[2K" in page
    assert not set(turned) & {"\u202e", "\u200b", "\x1b"} & set(page)


def test_a_file_is_sent_back_as_it_was_written(train: TestClient, web: TestClient) -> None:
    assert post(web, "alice", named(FILE, "turned") + "# \u200d\n").status_code == HTTPStatus.ACCEPTED
    eventually(lambda: "turned" in shown(web, "/jobs"))
    assert "# \u200d" in shown(web, "/jobs/new?from=alice~turned")


@pytest.mark.parametrize(
    ("start", "end", "shown_as"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T03:02:00Z", "3:02"),
        ("2026-01-01T00:00:00Z", "2026-01-07T00:00:00Z", "6 d"),
        ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z", "0:00"),
        ("2026-01-01T00:00:00Z", "", "1:00"),
        ("", "", ""),
        ("2026-01-01T00:00:00Z", "a moment ago", ""),
        ("2026-01-01T00:00:00", "2026-01-01T00:00:00Z", ""),
    ],
)
def test_durations(start: str, end: str, shown_as: str) -> None:
    assert duration(start, end, datetime(2026, 1, 1, 1, tzinfo=UTC)) == shown_as
