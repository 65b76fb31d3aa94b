"""The built portal of OpenPAI on an address of its own, which relays its requests to the console."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from tests.integration.openpai.conftest import Console
from tests.ports import free_port

_RELAYED = ("/rest-server/", "/log-manager/", "/prometheus/", "/marketplace/")
_SENT = ("authorization", "content-type", "accept", "cookie")
_ENV = {
    "restServerUri": "/rest-server",
    "marketplaceUri": "/marketplace/api",
    "prometheusUri": "/prometheus",
    "promScrapeTime": "300s",
    "grafanaUri": "/grafana",
    "authnMethod": "basic",
    "launcherType": "k8s",
    "launcherScheduler": "default",
    "saveTemplate": "false",
    "enableJobTransfer": "false",
}


class _Portal(SimpleHTTPRequestHandler):
    """Files, and answers of the console. refused: requests that it answered with an error."""

    def __init__(self, *words: Any, console: Console, refused: list[str], **more: Any) -> None:
        self._console, self._refused = console, refused
        super().__init__(*words, **more)

    def do_GET(self) -> None:
        if self.path.startswith("/env.js"):
            self._answer(200, "text/javascript", f"window.ENV = {json.dumps(_ENV)}; window.PAI_PLUGINS = [];".encode())
        elif self.path.startswith(_RELAYED):
            self._relay()
        else:
            super().do_GET()

    def do_POST(self) -> None:
        self._relay()

    def do_PUT(self) -> None:
        self._relay()

    def do_DELETE(self) -> None:
        self._relay()

    def _relay(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size) if size else None
        headers = {name: value for name, value in self.headers.items() if name.lower() in _SENT}
        address = f"{self._console.url}{self.path}"
        request = urllib.request.Request(address, body, headers, method=self.command)  # noqa: S310 # ours
        trust = ssl.create_default_context(cafile=str(self._console.authority))
        try:
            with urllib.request.urlopen(request, timeout=60, context=trust) as answer:  # noqa: S310 # ours
                self._answer(answer.status, answer.headers["Content-Type"], answer.read())
        except urllib.error.HTTPError as error:
            self._refused.append(f"{self.command} {self.path.partition('?')[0]} {error.code}")
            self._answer(error.code, error.headers["Content-Type"], error.read())

    def _answer(self, status: int, kind: str | None, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind or "text/plain")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *words: object) -> None:
        """Nothing: pytest shows what fails."""


@contextmanager
def portal(folder: Path, console: Console, refused: list[str]) -> Iterator[str]:
    """Yields the address of the portal in a folder."""
    handler = partial(_Portal, console=console, refused=refused, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", free_port()), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
