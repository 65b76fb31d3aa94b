"""Logs of instances: signed addresses of short life, read as their caller."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import Any

import pytest
from starlette.testclient import TestClient

from pai_install.agents.common.records import Record, Removed, logs_map, state_map
from pai_install.agents.job_recorder.objects import kept_job, kept_pod, pod_key
from pai_install.cluster.client import ApiError
from pai_install.console.links import LASTING_S, LinkSealer, LogRequest
from pai_install.console.log_reader import LogReader
from pai_install.console.services import ConsoleServices
from pai_install.console.streams import StreamGate
from pai_install.kube.model import Ref
from tests.unit.console.conftest import ALICE, CALLERS, ROLES, eventually, signed_in
from tests.unit.console.live import LiveClients, LiveCluster
from tests.unit.console.routes.test_jobs import ONE, job_of, pod, train

__all__ = ["train"]
LOGS = f"{ONE}/attempts/0/taskRoles/worker/taskIndex/0/attempts"
POD = "train-worker-0-0"


@pytest.fixture
def running(train: TestClient, kubernetes: LiveCluster) -> TestClient:
    """A job with a pod that wrote two lines."""
    pod(kubernetes, 0)
    kubernetes.logged[POD] = "one\ntwo\n"
    return train


def addresses(web: TestClient, restart: str = "0", **query: str) -> dict[str, str]:
    answer = web.get(f"{LOGS}/{restart}/logs", params=query, headers=signed_in("alice"))
    assert answer.status_code == HTTPStatus.OK, answer.text
    return {row["name"]: row["uri"] for row in answer.json()["locations"]}


def test_a_log_is_read_without_a_header_and_as_its_caller(running: TestClient, clients: LiveClients) -> None:
    found = addresses(running)
    assert set(found) == {"all", "stdout", "stderr"}
    assert found["all"].startswith("/log-manager/")
    clients.callers.clear()
    answer = running.get(found["all"])
    assert answer.text == "one\ntwo\n"
    assert answer.headers["content-type"].startswith("text/plain")
    assert [one.name for one in clients.callers] == [ALICE.name]


def test_an_address_has_no_rights_of_its_own(running: TestClient, clients: LiveClients) -> None:
    address = addresses(running)["all"]
    clients.roles = {**ROLES, "alice": frozenset()}
    assert running.get(address).json()["code"] == "ForbiddenUserError"


def test_an_address_expires(running: TestClient, services: ConsoleServices, monkeypatch: pytest.MonkeyPatch) -> None:
    address = addresses(running)["all"]
    later = services.links.clock() + LASTING_S + 1
    object.__setattr__(services.links, "clock", lambda: later)
    assert running.get(address).json()["code"] == "UnauthorizedUserError"


def test_an_address_ends_with_its_user(running: TestClient, services: ConsoleServices) -> None:
    address = addresses(running)["all"]
    object.__setattr__(services, "current", lambda caller: None if caller.uid == ALICE.uid else caller)
    assert running.get(address).json()["code"] == "UnauthorizedUserError"


@pytest.mark.parametrize("change", ["", "x", "a.b.c.d.e", "." * 4, "eyJhbGciOiJub25lIn0..a.b.c", "A" * 20_000])
def test_other_addresses_are_refused(running: TestClient, change: str) -> None:
    assert running.get("/log-manager/logs", params={"token": change}).json()["code"] == "UnauthorizedUserError"
    address = addresses(running)["all"]
    assert running.get(address[:-6] + "AAAAAA").json()["code"] == "UnauthorizedUserError"


def test_an_address_hides_the_token_of_its_caller(settings: Any) -> None:
    caller = CALLERS["alice"]
    person = type(caller)(caller.name, caller.label, caller.kind, bearer="person-token")
    sealed = LinkSealer(settings.signing_key).seal(person, LogRequest("vision-1", POD))
    assert "person" not in sealed
    opened = LinkSealer(settings.signing_key).open(sealed)
    assert opened == (person, LogRequest("vision-1", POD))
    sealed = LinkSealer(settings.signing_key).seal(replace(person, session="key"), LogRequest("vision-1", POD))
    assert LinkSealer(settings.signing_key).open(sealed) == (
        replace(person, bearer="", session="key"),
        LogRequest("vision-1", POD),
    )
    settings.signing_key.write_bytes(b"another key")
    assert LinkSealer(settings.signing_key).open(sealed) is None


def test_the_end_of_a_log(running: TestClient, services: ConsoleServices) -> None:
    token = addresses(running, **{"tail-mode": "true"})["all"].partition("token=")[2]
    opened = services.links.open(token)
    assert opened is not None
    assert opened[1].tail > 0


def test_a_log_is_followed(running: TestClient) -> None:
    answer = running.get(addresses(running)["all"] + "&follow=true")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text == "data: one\n\ndata: two\n\nevent: end\ndata: \n\n"


def test_a_log_that_breaks_off_ends_the_stream(running: TestClient, kubernetes: LiveCluster) -> None:
    def broken(*_words: Any, **_more: Any) -> Any:
        raise ApiError("cannot read", reason="NotFound")

    kubernetes.log_lines = broken  # type: ignore[method-assign]
    assert running.get(addresses(running)["all"] + "&follow=true").text == "event: end\ndata: \n\n"


def test_streams_are_counted(running: TestClient, services: ConsoleServices) -> None:
    object.__setattr__(services, "streams", StreamGate(most=1))
    address = addresses(running)["all"] + "&follow=true"
    for _ in range(3):  # each ends before the next
        assert running.get(address).status_code == HTTPStatus.OK
        eventually(lambda: not services.streams._open)
    services.streams.enter(ALICE.name)
    assert running.get(address).json()["code"] == "TooManyRequestsError"


@pytest.mark.parametrize("restart", ["1", "x", "99999999999"])
def test_other_attempts_have_no_log(running: TestClient, restart: str) -> None:
    answer = running.get(f"{LOGS}/{restart}/logs", headers=signed_in("alice"))
    assert answer.json()["code"] == "NoTaskLogError"


def test_an_instance_without_a_pod_has_no_log(train: TestClient) -> None:
    assert train.get(f"{LOGS}/0/logs", headers=signed_in("alice")).json()["code"] == "NoTaskLogError"


def deleted(web: TestClient, kubernetes: LiveCluster) -> str:
    """The address of the log of a job that is gone, of which the recorder kept the last line."""
    made, own = job_of(kubernetes), kubernetes.objects[Ref("pod", POD, "vision-1")]
    kubernetes.put(state_map(Record(kept_job(made), {pod_key(own): kept_pod(own)}, Removed(1_767_225_900))))
    kubernetes.put(logs_map(made, {POD: "the last line\n"}))
    kubernetes.delete([Ref("jobset", "train", "vision-1"), Ref("pod", POD, "vision-1")])
    headers = signed_in("alice")
    eventually(lambda: web.get(ONE, headers=headers).json().get("jobStatus", {}).get("state") == "STOPPED")
    return addresses(web)["all"]


def test_the_last_lines_of_a_deleted_job(running: TestClient, kubernetes: LiveCluster) -> None:
    address = deleted(running, kubernetes)
    assert running.get(address).text == "the last line\n"
    assert running.get(address + "&follow=true").text == "the last line\n"


class Store(LogReader):
    """A store that knows one pod."""

    def __init__(self, text: str) -> None:
        super().__init__("http://127.0.0.1:1")
        self.own, self.asked = text, list[tuple[str, str, int]]()

    def text(self, namespace: str, pod: str, tail: int) -> str:
        self.asked.append((namespace, pod, tail))
        return self.own


def test_the_whole_log_of_a_deleted_job(
    running: TestClient, kubernetes: LiveCluster, services: ConsoleServices, clients: LiveClients
) -> None:
    address = deleted(running, kubernetes)
    store = Store("all\nlines\n")
    object.__setattr__(services, "logs", store)
    assert running.get(address).text == "all\nlines\n"
    assert store.asked == [("vision-1", POD, -1)]
    # who may no longer read the group is not told of its log
    clients.roles = {**ROLES, "alice": frozenset()}
    assert running.get(address).json()["code"] == "ForbiddenUserError"
    assert len(store.asked) == 1


def test_without_an_answer_of_the_store_the_recorded_lines_are_shown(
    running: TestClient, kubernetes: LiveCluster, services: ConsoleServices
) -> None:
    address = deleted(running, kubernetes)
    for store in (Store(""), LogReader("http://127.0.0.1:1")):
        object.__setattr__(services, "logs", store)
        assert running.get(address).text == "the last line\n"
