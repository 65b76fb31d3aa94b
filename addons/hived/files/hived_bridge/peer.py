"""One HTTP call to a peer, bounded in time and size as a whole: a peer that sends a byte now and then is slow, too."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

LARGEST_ANSWER = 32 << 20


class PeerError(Exception):
    """A peer did not answer: not at all, not in time, too much, or not in HTTP. Says which, and never what was sent."""


class Answer(NamedTuple):
    """status: of HTTP. body: as it came."""

    status: int
    body: bytes


@dataclass(frozen=True)
class Peer:
    """Where a peer listens. tls: verifies its certificate; None: it speaks plain HTTP. timeout_s: of one call."""

    host: str
    port: int
    timeout_s: float
    tls: ssl.SSLContext | None = None

    def call(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Asks once, by a connection of its own. Raises PeerError."""
        try:
            with self._connected() as line, _ended_after(self.timeout_s, line):
                return self._asked(line, method, path, body, dict(headers or {}))
        except TimeoutError as error:
            raise PeerError(f"no answer within {self.timeout_s:g} s") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise PeerError(f"{type(error).__name__}: {error}"[:200]) from error

    def _connected(self) -> socket.socket:
        plain = socket.create_connection((self.host, self.port), self.timeout_s)
        if self.tls is None:
            return plain
        # it shakes hands when it is used, which is watched
        return self.tls.wrap_socket(plain, server_hostname=self.host, do_handshake_on_connect=False)

    def _asked(
        self, line: socket.socket, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> Answer:
        if isinstance(line, ssl.SSLSocket):
            line.do_handshake()
        connection = http.client.HTTPConnection(self.host, self.port)
        connection.sock = line
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        content = response.read(LARGEST_ANSWER + 1)
        if len(content) > LARGEST_ANSWER:
            raise PeerError(f"its answer is larger than {LARGEST_ANSWER} bytes")
        if response.length:
            raise PeerError("its answer ends early")
        return Answer(response.status, content)


@contextmanager
def _ended_after(seconds: float, line: socket.socket) -> Iterator[None]:
    """Ends a connection that takes longer, whatever its peer sends. Raises TimeoutError then."""
    late = threading.Event()

    def end() -> None:
        late.set()
        # past TLS, which another thread is using
        socket.socket.shutdown(line, socket.SHUT_RDWR)

    watch = threading.Timer(seconds, end)
    watch.daemon = True
    watch.start()
    try:
        yield
    except Exception as error:
        if late.is_set():
            raise TimeoutError from error
        raise
    finally:
        watch.cancel()
    if late.is_set():
        raise TimeoutError
