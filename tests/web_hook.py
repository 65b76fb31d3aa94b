"""A receiver of Alertmanager's web hook, for tests."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Hook:
    """A receiver. got: bodies of its requests, with their headers. at: time of each, seconds since 1970."""

    port: int = 0
    got: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    at: list[float] = field(default_factory=list)

    def alerts(self, status: str) -> list[tuple[str, str]]:
        """Name and node of each alert of that status."""
        found = [alert for _, body in self.got for alert in body["alerts"] if alert["status"] == status]
        return [(alert["labels"]["alertname"], alert["labels"].get("node", "")) for alert in found]

    def clear(self) -> None:
        """Forgets all requests."""
        self.got.clear()
        self.at.clear()


@contextmanager
def web_hook(address: str = "127.0.0.1", context: ssl.SSLContext | None = None) -> Iterator[Hook]:
    """Receives until the end of the block, on a free port. context: of a server with HTTPS."""
    made = Hook()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            made.at.append(time.time())
            made.got.append((self.headers.get("Authorization", ""), body))
            self.send_response(200)
            self.end_headers()

    server = ThreadingHTTPServer((address, 0), Handler)
    made.port = server.server_address[1]
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield made
    server.shutdown()
    server.server_close()
