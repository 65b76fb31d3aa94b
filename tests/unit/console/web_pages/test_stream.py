"""Bytes between the owner's SSH client and the port of the pod that the job declares."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from pai_install.console.caller import CallerKind
from pai_install.console.web_pages.app import MOST_OF_USER
from pai_install.console.web_pages.stream_relay import MOST_PIECE
from pai_install.kube.model import Ref
from tests.stopwatch import Stopwatch
from tests.unit.console.conftest import eventually
from tests.unit.console.web_pages.conftest import HOST, Site, page_job, removed

LABEL = "pai-install/ssh-port"
SOME = 5_000_000
# what lies in buffers of the system and of both programs: far less than a client or a pod would send
BUFFERED = 24 * 1024 * 1024


class Server:
    """A TCP server in the pod. talk: with each client. received: bytes so far."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self.talk: Callable[[socket.socket], None] = self.echo
        self.clients = self.ended = self.moved = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Wakes the thread that accepts: until then, the port is open."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.clients += 1
                threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            self.talk(client)
        self.ended += 1

    def echo(self, client: socket.socket) -> None:
        while piece := client.recv(65536):
            self.moved += len(piece)
            client.sendall(piece)

    def flood(self, client: socket.socket) -> None:
        while True:
            client.sendall(b"x" * 65536)
            self.moved += 65536

    def sleep(self, client: socket.socket) -> None:
        client.settimeout(None)
        time.sleep(20)

    def leave(self, client: socket.socket) -> None:
        client.sendall(b"bye")


@pytest.fixture
def server(site: Site) -> Iterator[Server]:
    """The SSH server in alice's job `shell`."""
    made = Server()
    put(site, "shell", made.port)
    yield made
    made.close()


def put(site: Site, name: str, port: int, **words: str) -> None:
    """A job of alice with an SSH server."""
    site.kubernetes.put(*page_job("alice", name, port, label=LABEL, **words))
    eventually(lambda: bool(site.services.model.jobs.find("alice", name, None)))


def token(site: Site, user: str = "alice") -> str:
    """An application token."""
    return site.sign_in.issuer.for_application(site.sign_in.users.caller(user, CallerKind.PASSWORD))


def opened(site: Site, bearer: str, name: str = "shell", host: str = HOST, **headers: str) -> ClientConnection:
    """A WebSocket to the SSH server of a job."""
    found = {**({"Authorization": f"Bearer {bearer}"} if bearer else {}), **headers}
    there = socket.create_connection(("127.0.0.1", site.port))
    return connect(
        f"ws://{host}/connect/{name}", sock=there, additional_headers=found, proxy=None, open_timeout=60, max_size=None
    )


def status(site: Site, bearer: str, name: str = "shell", **words: Any) -> int:
    """The status of a refusal."""
    with pytest.raises(InvalidStatus) as refused:
        opened(site, bearer, name, **words)
    return refused.value.response.status_code


def received(there: ClientConnection, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = there.recv(60)
        assert isinstance(piece, bytes)
        found += piece
    return found


@pytest.mark.parametrize("name", ["shell", "alice~shell"])
def test_bytes_pass_both_ways(site: Site, server: Server, name: str) -> None:
    content = os.urandom(SOME)

    def send() -> None:
        for at in range(0, SOME, 65536):
            there.send(content[at : at + 65536])

    with opened(site, token(site), name) as there:
        threading.Thread(target=send).start()
        assert received(there, SOME) == content
    eventually(lambda: server.ended == 1)


def test_the_end_of_the_server_ends_the_socket(site: Site, server: Server) -> None:
    server.talk = server.leave
    with opened(site, token(site)) as there:
        assert received(there, 3) == b"bye"
        with pytest.raises(ConnectionClosed):
            there.recv(60)
        assert there.close_code == 1000


def test_the_page_of_the_job_has_the_command_for_its_owner_alone(site: Site, server: Server) -> None:
    for user, shows in (("alice", True), ("carol", False)):
        page = site.console().get("/jobs/alice~shell", headers={"Cookie": f"__Host-Http-pai={site.session(user)}"})
        assert page.status_code == 200
        assert ("--console https://testserver:8444" in page.text, "root@shell" in page.text) == (shows, shows)


def test_nobody_else_connects(site: Site, server: Server) -> None:
    """A colleague, a member of another group, a stranger, and a browser with the owner's session."""
    cookie = site.opened()
    assert status(site, token(site, "carol"), "alice~shell") == 403
    assert status(site, token(site, "carol")) == 404
    assert status(site, token(site, "bob"), "alice~shell") == 404
    assert [status(site, bearer) for bearer in ("", f"{token(site)}x")] == [401, 401]
    assert status(site, "", Cookie=cookie) == 401
    assert status(site, token(site), host="evil.example.org") == 403
    assert server.clients == 0


def test_only_a_declared_port_of_a_running_pod_is_reached(site: Site, server: Server) -> None:
    assert status(site, token(site), "note") == 404
    assert status(site, token(site), "none") == 404
    put(site, "elsewhere", server.port, address="192.0.2.1")
    assert status(site, token(site), "elsewhere") == 503
    assert server.clients == 0
    server.close()
    assert status(site, token(site)) == 502


def test_a_page_does_not_open_the_port_of_an_ssh_server(site: Site, server: Server) -> None:
    assert site.open(site.session("alice"), "alice~shell").status_code == 404


@pytest.mark.parametrize(("message", "code"), [("text", 1003), (b"z" * (MOST_PIECE + 1), 1009)])
def test_a_message_that_is_no_piece_ends_the_socket(site: Site, server: Server, message: Any, code: int) -> None:
    with opened(site, token(site)) as there:
        there.send(message)
        with pytest.raises(ConnectionClosed):
            there.recv(60)
        assert there.close_code == code
    eventually(lambda: server.ended == 1)


def stalled(moved: Callable[[], int]) -> int:
    """What moved until nothing moved for a while."""
    before = -1
    while moved() != before:
        before = moved()
        time.sleep(0.5)
    return before


def test_a_slow_client_slows_the_server(site: Site, server: Server) -> None:
    server.talk = server.flood
    with opened(site, token(site)):
        eventually(lambda: server.moved > 0)
        assert stalled(lambda: server.moved) < BUFFERED


def test_a_slow_server_slows_the_client(site: Site, server: Server) -> None:
    server.talk, sent = server.sleep, [0]

    def send() -> None:
        with contextlib.suppress(ConnectionClosed, OSError):
            while True:
                there.send(b"y" * 65536)
                sent[0] += 65536

    with opened(site, token(site)) as there:
        threading.Thread(target=send, daemon=True).start()
        eventually(lambda: sent[0] > 0)
        assert stalled(lambda: sent[0]) < BUFFERED


def test_one_person_does_not_take_all_connections(site: Site, server: Server) -> None:
    bearer = token(site)
    with contextlib.ExitStack() as stack:
        for _ in range(MOST_OF_USER):
            stack.enter_context(opened(site, bearer))
        assert status(site, bearer) == 429
    eventually(lambda: server.ended == MOST_OF_USER)
    with opened(site, bearer) as there:
        there.send(b"again")
        assert there.recv(60) == b"again"


def ended_after(there: ClientConnection, cause: Callable[[], object]) -> Stopwatch:
    """What began with a cause, at the end of a socket."""
    there.send(b"hello")
    assert there.recv(60) == b"hello"
    watch = Stopwatch()
    cause()
    with pytest.raises(ConnectionClosed):
        there.recv(60)
    assert there.close_code == 1008
    return watch


def test_the_end_of_a_right_ends_the_socket_within_two_seconds(site: Site, server: Server) -> None:
    caller, bearer = site.sign_in.users.caller("alice", CallerKind.PASSWORD), token(site)
    with opened(site, bearer) as there:
        assert ended_after(there, lambda: site.sign_in.issuer.revoke(caller, bearer)).within(2)
    assert status(site, bearer) == 401
    bearer = token(site)
    with opened(site, bearer) as there:
        assert ended_after(there, lambda: removed(site, "alice")).within(2)
    assert status(site, bearer) == 401


def test_a_stopped_job_ends_the_socket(site: Site, server: Server) -> None:
    with opened(site, token(site)) as there:
        assert ended_after(there, lambda: site.kubernetes.delete([Ref("job", "shell", "vision-1")])).within(2)
