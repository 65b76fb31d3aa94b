"""The page of a log, and the changes of a job as events."""

from __future__ import annotations

import re
import threading
from http import HTTPStatus

import pytest
from starlette.testclient import TestClient

from pai_install.cluster.client import ApiError
from pai_install.console.pages import live
from pai_install.console.services import ConsoleServices
from pai_install.kube.model import Ref
from tests.unit.console.conftest import eventually, signed_in
from tests.unit.console.live import LiveCluster
from tests.unit.console.pages.test_jobs import shown
from tests.unit.console.routes.test_jobs import pod, train

__all__ = ["train"]
LOG = "/jobs/alice~train/log/worker/0"
SCRIPT = '<script src="/console.js" defer>'


def test_a_log_is_read_without_scripts(train: TestClient, kubernetes: LiveCluster) -> None:
    pod(kubernetes, 0)
    kubernetes.logged["train-worker-0-0"] = "one\n</pre><script>alert(1)</script>\n\x1b[2J"
    page = shown(train, LOG, "alice")
    assert "one\n&lt;/pre&gt;&lt;script&gt;" in page
    assert page.count("<script") == page.count(SCRIPT) == 1
    plain = re.search(r'href="(/log-manager/[^"]+)"', page)
    follow = re.search(r'data-follow="(/log-manager/[^"]+&amp;follow=true)"', page)
    assert plain is not None
    assert follow is not None
    assert train.get(plain[1].replace("&amp;", "&")).text.startswith("one\n")
    events = train.get(follow[1].replace("&amp;", "&"))
    assert events.headers["content-type"].startswith("text/event-stream")
    assert events.text.startswith("data: one\n\n")


@pytest.mark.parametrize("path", [LOG, "/jobs/alice~train/changes"])
def test_a_log_of_another_group_is_none(train: TestClient, kubernetes: LiveCluster, path: str) -> None:
    pod(kubernetes, 0)
    kubernetes.logged["train-worker-0-0"] = "secret words"
    for who in ("bob", "dan"):
        answer = train.get(path, headers=signed_in(who))
        assert answer.status_code == HTTPStatus.NOT_FOUND
        assert "secret words" not in answer.text


@pytest.mark.parametrize("path", ["worker/9", "worker/x", "..%2f/0", "other/0"])
def test_an_instance_without_a_log(train: TestClient, kubernetes: LiveCluster, path: str) -> None:
    pod(kubernetes, 0)
    answer = train.get(f"/jobs/alice~train/log/{path}", headers=signed_in("alice"))
    assert answer.status_code == HTTPStatus.NOT_FOUND


def test_a_log_that_cannot_be_read_is_said(train: TestClient, kubernetes: LiveCluster) -> None:
    def refused(*_words: object, **_more: object) -> str:
        raise ApiError("cannot read the log", reason="BadRequest", details="container is waiting to start")

    pod(kubernetes, 0)
    kubernetes.logs = refused  # type: ignore[method-assign]
    page = shown(train, LOG, "alice")
    assert 'role="status"' in page
    assert SCRIPT not in page


def test_changes_of_a_job_are_events(
    train: TestClient, services: ConsoleServices, kubernetes: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_LOOK_S", 0.02)
    page = shown(train, "/jobs/alice~train", "alice")
    known = re.search(r'data-changes="/jobs/alice~train/changes" data-state="([^"]+)"', page)
    assert known is not None
    found: list[str] = []

    def follow() -> None:
        found.append(train.get("/jobs/alice~train/changes", headers=signed_in("alice")).text)

    thread = threading.Thread(target=follow)
    thread.start()
    eventually(lambda: services.streams._open.total() == 1)
    kubernetes.delete([Ref("jobset", "train", "vision-1")])
    thread.join(30)
    assert found[0].startswith(f"data: {known[1]}\n\n")
    assert found[0].endswith("data: gone\n\n")
    assert services.streams._open.total() == 0


def test_a_stream_of_changes_ends(
    train: TestClient, services: ConsoleServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_LONGEST_S", 0.1)
    monkeypatch.setattr(live, "_LOOK_S", 0.02)
    assert train.get("/jobs/alice~train/changes", headers=signed_in("alice")).text.count("data:") == 1
    assert train.get("/jobs/alice~train/changes").status_code == HTTPStatus.UNAUTHORIZED
    assert services.streams._open.total() == 0


def test_the_script_is_ours(train: TestClient) -> None:
    answer = train.get("/console.js")
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "innerHTML" not in answer.text
    assert "eval" not in answer.text
