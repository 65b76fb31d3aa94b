"""One call is bounded as a whole, whatever the peer does."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pai_install.agents.common import http as module
from pai_install.agents.common.http import Endpoint, HttpError, Response
from tests.ports import free_port

LATE = r"no answer within 0\.3 s"


@contextmanager
def playing(*pieces: bytes, pause: float = 0.0, silent: bool = False) -> Iterator[int]:
    """Takes one connection and sends pieces; the port. silent: then it waits for the other one to end it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def play() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                try:
                    for piece in pieces:
                        connection.sendall(piece)
                        time.sleep(pause)
                    while silent and connection.recv(65536):
                        pass
                except OSError:
                    return

        thread = threading.Thread(target=play)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def ask(port: int, timeout_s: float = 30) -> Response:
    return Endpoint("127.0.0.1", port, timeout_s).call("POST", "/", b"{}", {"Content-Type": "application/json"})


def test_answer() -> None:
    with playing(b"HTTP/1.0 201 Created\r\nContent-Length: 2\r\n\r\nok") as port:
        assert ask(port) == Response(201, b"ok")


@pytest.mark.parametrize(
    "pieces",
    [
        [b"HTTP/1.0 200 OK\r\nContent-Length: 90\r\n\r\n", *[b"x"] * 400],
        [b"HTTP/1.0 200 OK\r\n", *[b"X: y\r\n"] * 400],
        [b"HTTP/1.0 200 OK\r\n\r\n", *[b"x"] * 400],
    ],
    ids=["body", "headers", "body without a length"],
)
def test_byte_now_and_then_is_late(pieces: list[bytes]) -> None:
    with playing(*pieces, pause=0.05) as port:
        started = time.monotonic()
        with pytest.raises(HttpError, match=LATE):
            ask(port, 0.3)
        assert time.monotonic() - started < 15


def test_silence_is_late() -> None:
    with playing(silent=True) as port, pytest.raises(HttpError, match=LATE):
        ask(port, 0.3)


@pytest.mark.parametrize(
    "reply",
    [b"", b"garbage\r\n\r\n", b"HTTP/1.0 abc\r\n\r\n", b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nab"],
    ids=["nothing", "no HTTP", "no status", "less than said"],
)
def test_garbage(reply: bytes) -> None:
    with playing(reply) as port, pytest.raises(HttpError):
        ask(port)


def test_answer_without_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BODY", 1000)
    with playing(b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 2000) as port, pytest.raises(HttpError, match="larger than 1000"):
        ask(port)


def test_nothing_listens() -> None:
    with pytest.raises(HttpError, match="ConnectionRefusedError"):
        ask(free_port())
