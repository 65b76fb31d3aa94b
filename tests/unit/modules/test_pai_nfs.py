"""The question to an NFS server, against a stand-in that answers with bytes of its own."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.ansible_path import module_util
from tests.ports import free_port

NFS = module_util("pai_nfs")
Reply = Callable[[bytes], bytes]


def accepted(call: bytes, status: int, *, accept: int = 0) -> bytes:
    """The reply of a server that lets the caller in."""
    return call[:4] + struct.pack(">6I", 1, 0, 0, 0, accept, status)


class StandInServer:
    """Answers each connection once, in records of the given length. silent: it takes the call and says nothing."""

    def __init__(self, reply: Reply, record: int = 1 << 20, *, silent: bool = False) -> None:
        self.reply, self.record, self.silent = reply, record, silent
        self.call = b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        connection, _address = self.listener.accept()
        with connection:
            (mark,) = struct.unpack(">I", connection.recv(4))
            self.call = connection.recv(mark & 0x7FFFFFFF)
            if self.silent:
                connection.recv(1)  # until the caller has had enough
                return
            data = self.reply(self.call)
            parts = [data[start : start + self.record] for start in range(0, len(data), self.record)]
            for number, part in enumerate(parts):
                last = (number == len(parts) - 1) << 31
                connection.sendall(struct.pack(">I", last | len(part)) + part)


@pytest.fixture
def serve() -> Iterator[Callable[..., StandInServer]]:
    """Starts stand-ins."""
    started: list[StandInServer] = []

    def start(
        reply: Reply = lambda call: accepted(call, 0), record: int = 1 << 20, *, silent: bool = False
    ) -> StandInServer:
        started.append(StandInServer(reply, record, silent=silent))
        return started[-1]

    yield start
    for server in started:
        server.listener.close()


def answer(server: StandInServer, path: str = "/export/data", timeout_s: float = 30) -> dict[str, str]:
    found: dict[str, str] = NFS.probe_export("127.0.0.1", path, server.port, timeout_s)
    return found


@pytest.mark.parametrize("record", [1 << 20, 4, 7])
def test_a_folder_that_is_served(serve: Callable[..., StandInServer], record: int) -> None:
    server = serve(record=record)
    assert answer(server) == {"answer": "served", "why": ""}
    assert struct.unpack_from(">5I", server.call, 4) == (0, 2, 100003, 4, 1)
    names = struct.pack(">II", 15, 6) + b"export\0\0" + struct.pack(">II", 15, 4) + b"data"
    assert server.call.endswith(struct.pack(">3I", 0, 3, 24) + names)


@pytest.mark.parametrize(
    ("status", "said"), [(2, "missing"), (13, "missing"), (1, "missing"), (10016, "unclear"), (10021, "unclear")]
)
def test_what_the_server_answers(serve: Callable[..., StandInServer], status: int, said: str) -> None:
    assert answer(serve(lambda call: accepted(call, status)))["answer"] == said


def test_a_server_of_version_3_alone_is_only_known_to_answer(serve: Callable[..., StandInServer]) -> None:
    found = answer(serve(lambda call: accepted(call, 0, accept=2)))
    assert found == {"answer": "unclear", "why": "it does not speak NFS version 4"}


@pytest.mark.parametrize(
    "data",
    [b"HTTP/1.1 400 Bad Request", b"x" * 40, b"", struct.pack(">I", 1 << 31 | 1 << 30)],
    ids=["http", "odd", "none", "long"],
)
def test_what_is_no_nfs_is_told(data: bytes, serve: Callable[..., StandInServer]) -> None:
    assert answer(serve(lambda _call: data or b"\0"))["answer"] == "unclear"


def test_a_server_that_says_nothing_does_not_hold_up(serve: Callable[..., StandInServer]) -> None:
    began = time.monotonic()
    assert answer(serve(silent=True), timeout_s=0.5)["answer"] == "silent"
    assert time.monotonic() - began < 10


def test_no_server_and_no_such_name() -> None:
    port = free_port()
    assert NFS.probe_export("127.0.0.1", "/x", port, 1)["answer"] == "silent"
    found = NFS.exports(
        [{"server": "no-such.invalid", "path": "/x", "port": "1"}, {"server": "127.0.0.1", "path": "/", "port": port}]
    )
    assert [item["answer"] for item in found] == ["silent", "silent"]
