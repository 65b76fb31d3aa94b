"""A web server that serves a folder of bytes, misbehaves when told to, and remembers what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class WebServer:
    """pages: path -> body. cut: path -> after how many bytes the first answer breaks off.

    tokens: paths that want "Authorization: Bearer secret". content_types: path -> type.
    """

    url: str = ""
    pages: dict[str, bytes] = field(default_factory=dict)
    cut: dict[str, int] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    redirects: dict[str, str] = field(default_factory=dict)
    realm: str | None = None
    ranges: bool = True
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


def _handler(state: WebServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append((self.path, dict(self.headers)))
            path = self.path.partition("?")[0]
            if path in state.redirects:
                self.send_response(302)
                self.send_header("Location", state.redirects[path])
                self.end_headers()
                return
            if path in state.tokens and self.headers.get("Authorization") != "Bearer secret":
                realm = f"{state.url}/token" if state.realm is None else state.realm
                self.send_response(401)
                self.send_header(
                    "WWW-Authenticate",
                    f'Bearer realm="{realm}",service="registry",scope="repository:x:pull"',
                )
                self.end_headers()
                return
            if path not in state.pages:
                self.send_error(404, "no such page")
                return
            self._page(path, state.pages[path])

        def _page(self, path: str, body: bytes) -> None:
            start = 0
            wanted = self.headers.get("Range", "")
            if wanted and state.ranges:
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if start >= len(body):
                    self.send_error(416)
                    return
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body) - start))
            self.end_headers()
            end = start + state.cut.pop(path, len(body))
            self.wfile.write(body[start:end])

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            pass

    return Handler


@pytest.fixture
def web() -> Iterator[WebServer]:
    """A server on a free port of the controller host."""
    state = WebServer()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield state
    server.shutdown()
    server.server_close()
    thread.join()
