"""Two hundred slow senders at once: others are answered, and the memory of the console stays small."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import httpx2
import pytest

from tests.integration.console.conftest import HOST, PASSWORDS, Console, console, own, users
from tests.integration.console.test_web_pages import listening
from tests.stopwatch import Stopwatch
from tests.suites import sampled

__all__ = ["console", "own", "users"]
SENDERS, LASTS_S, IN_TIME_S = 200, 6.0, 2.0
MOST_MEMORY = 80 * 2**20
JOBS = "/rest-server/api/v2/jobs"


@pytest.fixture(scope="module")
def port(console: Console) -> int:
    return listening(console.new().app)


def memory() -> int:
    (line,) = (it for it in Path("/proc/self/status").read_text().splitlines() if it.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


@contextmanager
def flood(port: int, path: str, begin: bytes, token: str = "") -> Iterator[list[socket.socket]]:
    """Each sender begins, and goes on with a byte a second."""
    login = f"Authorization: Bearer {token}\r\n" if token else ""
    head = f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: text/yaml\r\n{login}Content-Length: 1000000\r\n\r\n"
    senders = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(SENDERS)]
    ended = threading.Event()

    def send() -> None:
        for one in senders:
            with contextlib.suppress(OSError):
                one.sendall(head.encode() + begin)
        while not ended.wait(1):
            for one in senders:
                with contextlib.suppress(OSError):
                    one.sendall(b"a")

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield senders
    finally:
        ended.set()
        thread.join()
        for one in senders:
            one.close()


def others_are_answered(port: int, token: str) -> None:
    web = httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers={"Host": HOST}, trust_env=False, timeout=20)
    lasts = Stopwatch()
    while lasts.seconds < LASTS_S:
        for path, headers in (
            ("/login", {}),
            ("/rest-server/api/v2/users/alice", {"Authorization": f"Bearer {token}"}),
        ):
            watch = Stopwatch()
            assert web.get(path, headers=headers).status_code == 200
            assert watch.within(IN_TIME_S), path
        time.sleep(0.2)


@pytest.mark.parametrize(("path", "size"), sampled([*product((JOBS, "/login", "/jobs/new"), (1, 60_000, 500_000))], 4))
def test_a_flood_of_strangers(console: Console, port: int, path: str, size: int) -> None:
    token, before = console.token("alice", PASSWORDS["alice"]), memory()
    with flood(port, path, b"a" * size):
        others_are_answered(port, token)
        assert memory() - before < MOST_MEMORY


def test_lost_connections_leave_no_traces(port: int, caplog: pytest.LogCaptureFixture) -> None:
    """A stranger would fill the disk with them."""
    with flood(port, JOBS, b"a" * 100):
        time.sleep(1)
    time.sleep(1)
    assert [one for one in caplog.records if one.exc_info] == []


def test_a_flood_of_one_user(console: Console, port: int) -> None:
    """A few of the large bodies are read at a time, and others of the user are refused."""
    mallory, alice, before = (*(console.token(it, PASSWORDS[it]) for it in ("bob", "alice")), memory())
    with flood(port, JOBS, b"a" * 500_000, mallory) as senders:
        others_are_answered(port, alice)
        assert memory() - before < MOST_MEMORY
        answers, waiting, end = list[bytes](), {*senders}, time.monotonic() + 60
        while answers.count(b"429") < SENDERS // 2:
            assert time.monotonic() < end, answers
            for one in [*waiting]:
                one.settimeout(0.01)
                with contextlib.suppress(OSError):
                    answers.append(one.recv(100)[9:12])
                    waiting.discard(one)
