"""HTTP calls that are bounded in time and size as a whole: a server that sends a byte now and then is slow, too."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

MAX_BODY = 32 << 20


class HttpError(Exception):
    """A server did not answer in time, in size, or in HTTP. The message does not repeat the request."""


class Response(NamedTuple):
    """status: of HTTP. body: as it came."""

    status: int
    body: bytes


@dataclass(frozen=True)
class Endpoint:
    """An HTTP server. tls: verifies its certificate, None for plain HTTP. timeout_s: of one call."""

    host: str
    port: int
    timeout_s: float
    tls: ssl.SSLContext | None = None

    def call(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """The response to one request on its own connection. Raises HttpError."""
        with self.open(method, path, body, headers) as response:
            content = response.read(MAX_BODY + 1)
            if len(content) > MAX_BODY:
                raise HttpError(f"its answer is larger than {MAX_BODY} bytes")
            # http.client takes a closed connection for the end of the body, also if bytes are missing.
            if response.length:
                raise HttpError("its answer ends early")
            return Response(response.status, content)

    @contextmanager
    def open(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Iterator[http.client.HTTPResponse]:
        """A response to read from. Raises HttpError, also for errors of the reader."""
        limit_s = self.timeout_s if timeout_s is None else timeout_s
        try:
            with self._connected() as line, _ended_after(limit_s, line):
                if isinstance(line, ssl.SSLSocket):
                    line.do_handshake()
                line.settimeout(limit_s)
                connection = http.client.HTTPConnection(self.host, self.port)
                connection.sock = line
                connection.request(method, path, body, dict(headers or {}))
                with connection.getresponse() as response:
                    yield response
        except TimeoutError as error:
            raise HttpError(f"no answer within {limit_s:g} s") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise HttpError(f"{type(error).__name__}: {error}"[:200]) from error

    def _connected(self) -> socket.socket:
        plain = socket.create_connection((self.host, self.port), self.timeout_s)
        if self.tls is None:
            return plain
        # the time limit covers the handshake, too
        return self.tls.wrap_socket(plain, server_hostname=self.host, do_handshake_on_connect=False)


@contextmanager
def _ended_after(timeout_s: float, line: socket.socket) -> Iterator[None]:
    """Ends a connection that takes longer. Raises TimeoutError then."""
    late = threading.Event()

    def end() -> None:
        late.set()
        try:
            # past TLS, which another thread is using
            socket.socket.shutdown(line, socket.SHUT_RDWR)
        except OSError:
            return

    timer = threading.Timer(timeout_s, end)
    # A timer thread must not keep a program from ending.
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception as error:
        if late.is_set():
            raise TimeoutError from error
        raise
    finally:
        timer.cancel()
    if late.is_set():
        raise TimeoutError
