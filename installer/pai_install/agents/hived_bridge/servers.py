"""Two HTTP servers: kube-scheduler's, on loopback, and the open one for probes and Prometheus."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Optional

from pai_install.agents.common.http import Response
from pai_install.agents.hived_bridge.messages import RefusedError

LARGEST_BODY = 16 << 20
MOST_CONNECTIONS = 64
# path and body (None for GET) -> answer; None: there is no such path
Answer = Callable[[str, Optional[bytes]], Optional[Response]]


class Server(ThreadingHTTPServer):
    """limit_s: time limit of one connection. At most 64 connections are open at once: more are closed."""

    # connections that are being answered end before the process does
    daemon_threads = False

    def __init__(self, address: tuple[str, int], answer: Answer, limit_s: float) -> None:
        self.answer, self.limit_s = answer, limit_s
        self._slots = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__(address, Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Responses in a thread of its own while there are slots."""
        # Anything in the pod network reaches the open port. A thread per connection without limit would end the bridge.
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """One connection, ended after `limit_s` whatever the client does."""
        watch = threading.Timer(self.limit_s, _cut, (request,))
        watch.daemon = True
        watch.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            watch.cancel()
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no event."""


class Handler(BaseHTTPRequestHandler):
    """One request per connection."""

    server: Server
    server_version = "hived-bridge"
    sys_version = ""

    def do_GET(self) -> None:
        """Of the open server."""
        self._send(self.server.answer(self.path.partition("?")[0], None))

    def do_POST(self) -> None:
        """Of kube-scheduler's server."""
        try:
            self._send(self.server.answer(self.path, self._body()))
        except RefusedError as error:
            self._send(Response(400, json.dumps({"Error": f"hived-bridge: {error}"}).encode()))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 # the name is the base class's
        """Nothing: what matters is counted."""

    def _body(self) -> bytes:
        if self.headers.get_content_type() != "application/json":
            raise RefusedError("the body is not JSON")
        length = self.headers.get("Content-Length", "")
        # int() accepts signs, spaces, and digits of other scripts.
        if not length.isascii() or not length.isdigit() or int(length) > LARGEST_BODY:
            raise RefusedError(f"the body has no length up to {LARGEST_BODY}")
        body = self.rfile.read(int(length))
        if len(body) != int(length):
            raise RefusedError("the body ends early")
        return body

    def _send(self, answer: Response | None) -> None:
        status, body = answer or Response(404, b'{"Error": "hived-bridge: there is no such path"}')
        self.send_response(status)
        kind = "application/json" if body[:1] in (b"{", b"[", b'"') else "text/plain; version=0.0.4; charset=utf-8"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _cut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
