"""A client against answers that a healthy API server gives rarely: busy, expired, broken off."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pai_install.cluster.client import ApiError, LogWindow, NoClusterError, Select
from pai_install.cluster.http import Connections, api_server
from pai_install.cluster.over_http import HttpClient
from pai_install.kube.model import Ref
from pai_install.registry.certificates import make_authority, make_serving
from tests.errors import raises

PODS = Select(("pods",))
BUSY = {"kind": "Status", "code": 429, "reason": "TooManyRequests", "message": "try again later"}
EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 5 (9)"}


def pod(name: str, version: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "resourceVersion": version}}


def pods(*names: str, version: str = "5") -> dict[str, Any]:
    return {"kind": "PodList", "metadata": {"resourceVersion": version}, "items": [pod(name, "5") for name in names]}


def event(kind: str, item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": item}


@dataclass
class Answer:
    """documents: of the body, a line each. whole: the connection lasts to the end of the body."""

    documents: tuple[Mapping[str, Any], ...]
    status: int = 200
    pause: str = ""
    whole: bool = True


@dataclass
class ApiServerStandIn:
    """Gives its answers in turn, and keeps the requests."""

    answers: list[Answer] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def add(self, *documents: Mapping[str, Any], **more: Any) -> None:
        self.answers.append(Answer(documents, **more))


@pytest.fixture
def server() -> ApiServerStandIn:
    return ApiServerStandIn()


@pytest.fixture
def client(server: ApiServerStandIn, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpClient]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None: ...

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            server.asked.append(f"{self.command} {self.path}")
            found = server.answers.pop(0)
            self.send_response(found.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            if found.pause:
                self.send_header("Retry-After", found.pause)
            self.end_headers()
            for one in found.documents:
                line = json.dumps(one).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.write(b"0\r\n\r\n" if found.whole else b"")
            self.close_connection = not found.whole

        do_GET = do_POST = do_PATCH = answer  # noqa: N815 - names of http.server

    monkeypatch.setattr("pai_install.cluster.watch._PAUSE_S", 0)
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    with ExitStack() as stack:
        thread = threading.Thread(target=http.serve_forever, args=(0.02,))
        thread.start()
        stack.callback(thread.join)
        stack.callback(http.server_close)
        stack.callback(http.shutdown)
        found = HttpClient(Connections([api_server(f"http://127.0.0.1:{http.server_port}")]))
        stack.callback(found.close)
        yield found


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    # not time.sleep itself: threads of other tests of this process call that, too
    monkeypatch.setattr("pai_install.cluster.http.time", SimpleNamespace(sleep=found.append))
    return found


def test_a_busy_api_server_is_asked_again_after_its_pause(
    server: ApiServerStandIn, client: HttpClient, pauses: list[float]
) -> None:
    server.add(BUSY, status=429, pause="3")
    server.add(BUSY, status=429)
    server.add(pods("one"))
    ((found,),) = client.list(PODS)
    assert found["metadata"]["name"] == "one"
    assert pauses == [3.0, 1.0]


def test_a_pause_has_a_limit(server: ApiServerStandIn, client: HttpClient, pauses: list[float]) -> None:
    server.add(BUSY, status=429, pause="86400")
    server.add(pods())
    assert client.list(PODS) == ((),)
    assert pauses == [5.0]


def test_an_api_server_that_stays_busy_refuses(
    server: ApiServerStandIn, client: HttpClient, pauses: list[float]
) -> None:
    server.answers = [Answer((BUSY,), status=429)] * 4
    with raises("api-request-refused", kind=ApiError) as caught:
        client.list(PODS)
    assert caught.value.reason == "TooManyRequests"
    assert (len(server.asked), len(pauses)) == (4, 3)


def test_a_change_waits_too_since_a_busy_api_server_made_none(
    server: ApiServerStandIn, client: HttpClient, pauses: list[float]
) -> None:
    server.add(BUSY, status=429, pause="1")
    server.add(pod("one", "6"))
    (made,) = client.create([pod("one", "")])
    assert (made["metadata"]["resourceVersion"], pauses) == ("6", [1.0])


@pytest.mark.parametrize("words", ["etcdserver: request is too large", "etcdserver: mvcc: database space exceeded"])
def test_a_refusal_of_etcd_is_an_answer(server: ApiServerStandIn, client: HttpClient, words: str) -> None:
    """It is the same a second time."""
    server.add({"kind": "Status", "code": 500, "message": words}, status=500)
    with raises("api-request-refused", kind=ApiError) as caught:
        client.create([pod("one", "")])
    assert (caught.value.reason, caught.value.details) == ("", words)


@pytest.mark.parametrize(("words", "times"), [("etcdserver: leader changed", 5), ("unable to handle the request", 1)])
def test_a_request_that_only_reads_waits_for_a_leader_of_etcd(
    server: ApiServerStandIn, client: HttpClient, pauses: list[float], words: str, times: int
) -> None:
    """A service behind the API server may be away for long."""
    server.answers = [Answer(({"kind": "Status", "code": 500, "message": words},), status=500)] * 5
    with raises("no-control-plane-answers", kind=NoClusterError):
        client.list(PODS)
    assert (len(server.asked), len(pauses)) == (times, times - 1)
    server.answers[:1] = [Answer((pods("one"),))]
    assert len(client.list(PODS)[0]) == 1


# of Kubernetes 1.36.3, while four clients changed the quota and twenty created objects
CONTENDED = {
    "kind": "Status",
    "code": 409,
    "reason": "Conflict",
    "message": 'Operation cannot be fulfilled on resourcequotas "room": the object has been modified; '
    "please apply your changes to the latest version and try again",
}
EXISTS = {"kind": "Status", "code": 409, "reason": "AlreadyExists", "message": 'pods "one" already exists'}


@pytest.mark.parametrize("times", [1, 5, 6])
def test_a_creation_that_many_others_keep_from_the_quota_is_made_again(
    server: ApiServerStandIn, client: HttpClient, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("pai_install.cluster.http_changes.time", SimpleNamespace(sleep=pauses.append))
    for _ in range(times):
        server.add(CONTENDED, status=409)
    server.add(pod("one", "7"), status=201)
    if times == 6:
        with raises("api-request-refused", kind=ApiError) as caught:
            client.create([pod("one", "")])
        assert caught.value.reason == "Conflict"
    else:
        assert client.create([pod("one", "")])[0]["metadata"]["resourceVersion"] == "7"
    assert len(pauses) == min(times, 5)


def test_a_creation_of_an_existing_object_is_made_once(server: ApiServerStandIn, client: HttpClient) -> None:
    server.add(EXISTS, status=409)
    with raises("api-request-refused", kind=ApiError) as caught:
        client.create([pod("one", "")])
    assert caught.value.reason == "AlreadyExists"
    assert server.answers == []


def test_a_watch_goes_on_from_its_last_version(server: ApiServerStandIn, client: HttpClient) -> None:
    server.add(pods("one"))
    server.add(event("MODIFIED", pod("one", "6")), event("BOOKMARK", pod("", "8")))
    server.add(event("DELETED", pod("one", "9")), whole=False)
    server.add(event("ADDED", pod("two", "11")))
    found = [one.type for one in islice(client.watch(PODS), 5)]
    assert found == ["ADDED", "BOOKMARK", "MODIFIED", "DELETED", "ADDED"]
    assert [word.partition("resourceVersion=")[2].partition("&")[0] for word in server.asked] == ["", "5", "8", "9"]


@pytest.mark.parametrize("in_the_head", [True, False])
def test_a_watch_that_missed_changes_ends(server: ApiServerStandIn, client: HttpClient, *, in_the_head: bool) -> None:
    server.add(pods("one"))
    if in_the_head:
        server.add(EXPIRED, status=410)
    else:
        server.add(event("ERROR", EXPIRED))
    changes = client.watch(PODS)
    assert [one.type for one in islice(changes, 2)] == ["ADDED", "BOOKMARK"]
    with raises("api-request-refused", kind=ApiError) as caught:
        next(changes)
    assert caught.value.reason == "Expired"


def test_a_list_that_expires_between_its_pages_comes_at_once(server: ApiServerStandIn, client: HttpClient) -> None:
    first = pods("one")
    first["metadata"]["continue"] = "more"
    server.add(first)
    server.add(EXPIRED, status=410)
    server.add(pods("one", "two", version="9"))
    (found,) = client.list(PODS)
    assert [one["metadata"]["name"] for one in found] == ["one", "two"]
    assert "limit=" not in server.asked[-1]


def test_a_request_that_only_reads_survives_a_lost_connection(server: ApiServerStandIn, client: HttpClient) -> None:
    server.add(pod("one", "5"), whole=False)
    server.add(pod("one", "5"))
    (found,) = client.get([Ref("pod", "one", "default")])
    assert found is not None
    assert len(server.asked) == 2


@contextmanager
def closing(times: int, folder: Path) -> Iterator[tuple[HttpClient, list[str]]]:
    """A client of an API server behind a proxy, which ends connections before their handshake.

    times: connections to end. Yields the client with what became of each connection.
    """
    authority, authority_key = make_authority("test", datetime.now(UTC))
    (folder / "ca.crt").write_text(authority)
    (folder / "both.pem").write_text("".join(make_serving(authority, authority_key, ("127.0.0.1",), datetime.now(UTC))))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(folder / "both.pem")
    body = json.dumps(pod("one", "6")).encode()
    head = b"HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    seen: list[str] = []

    def serve() -> None:
        with suppress(OSError):  # the end of the test
            while True:
                connection, _ = listener.accept()
                if len(seen) < times:
                    seen.append("closed")
                    connection.recv(1 << 16)
                    connection.close()
                    continue
                with tls.wrap_socket(connection, server_side=True) as server:
                    seen.append("answered")
                    request = server.recv(1 << 16)
                    while not request.endswith(b"}" if request.startswith(b"POST") else b"\r\n\r\n"):
                        request += server.recv(1 << 16)
                    server.sendall(head + body)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        client = HttpClient(Connections([api_server(url, authority=folder / "ca.crt")]))
        try:
            yield client, seen
        finally:
            client.close()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize("times", [0, 1, 2])
def test_a_connection_that_a_proxy_ends_before_its_handshake_is_made_again(tmp_path: Path, times: int) -> None:
    """As HAProxy does with those to an API server that went away. Nothing was sent, so changes are sent again, too."""
    with closing(times, tmp_path) as (client, seen):
        (made,) = client.create([pod("one", "")])
    assert made["metadata"]["resourceVersion"] == "6"
    assert seen == ["closed"] * times + ["answered"]


def test_a_large_answer_comes_in_parts(server: ApiServerStandIn, client: HttpClient) -> None:
    server.add({"items": ["x" * 1000] * 1000})
    parts = [*client.raw_parts("/api/v1/pods")]
    assert (len(parts) > 1, json.loads(b"".join(parts))["items"][-1]) == (True, "x" * 1000)
    server.add(EXISTS, status=403)
    with raises("api-request-refused", kind=ApiError):
        next(client.raw_parts("/api/v1/pods"))
    server.add({"items": ["x" * 1000] * 1000}, whole=False)
    with raises("api-request-refused", kind=ApiError) as caught:
        list(client.raw_parts("/api/v1/pods"))
    assert caught.value.reason == "NoAnswer"


def test_a_log_is_asked_for_again_after_such_a_connection(tmp_path: Path) -> None:
    with closing(2, tmp_path) as (client, seen):
        assert [*client.log_lines(Ref("pod", "p", "b"), LogWindow(), container="main")]
    assert seen == ["closed", "closed", "answered"]


def test_a_proxy_that_ends_every_connection_is_asked_three_times(tmp_path: Path) -> None:
    with closing(9, tmp_path) as (client, seen), raises("no-control-plane-answers", kind=NoClusterError):
        client.create([pod("one", "")])
    assert seen == ["closed"] * 3


def test_a_change_is_never_made_twice(server: ApiServerStandIn, client: HttpClient) -> None:
    server.add(pod("one", "6"), whole=False)
    with raises("api-request-refused", kind=ApiError) as caught:
        client.create([pod("one", "")])
    assert caught.value.reason == "NoAnswer"
    assert len(server.asked) == 1


def test_a_log_that_breaks_off_is_an_error_of_the_api(client: HttpClient, server: ApiServerStandIn) -> None:
    server.add({"line": 1}, whole=False)
    lines = client.log_lines(Ref("pod", "p", "b"), LogWindow(tail=5), container="main")
    assert next(lines) == '{"line": 1}'
    with raises("api-request-refused", kind=ApiError):
        next(lines)


def test_a_kubelet_that_sends_more_than_it_keeps_ends(client: HttpClient, server: ApiServerStandIn) -> None:
    server.add(*({"line": "x" * (1 << 20)} for _ in range(40)))
    with raises("api-answer-too-large"):
        list(client.log_lines(Ref("pod", "p", "b"), LogWindow(tail=5), container="main"))
