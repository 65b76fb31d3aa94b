"""The way to the stand-in internet: a proxy that knows some host names and refuses all others."""

from __future__ import annotations

import fnmatch
import http.server
import os
import select
import socket
import ssl
import threading
import urllib.request
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from tests.internet.authority import Authority
from tests.internet.servers import HOSTS, MIRROR_HOST, Servers

_Kind = TypeVar("_Kind", bound=http.server.ThreadingHTTPServer)


@dataclass
class Internet:
    """allowed: host names, with `*`, that the proxy lets through. asked, refused: those that it was asked for.

    company: the certificate (PEM) of who signed the mirror's.
    """

    servers: Servers
    company: str
    allowed: Collection[str]
    asked: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)

    def lets(self, host: str) -> bool:
        """Whether the proxy connects to a host; it remembers that it was asked."""
        known = any(fnmatch.fnmatchcase(host, pattern) for pattern in self.allowed)
        (self.asked if known else self.refused).add(host)
        return known


@contextmanager
def connected(servers: Servers, allowed: Collection[str], folder: Path) -> Iterator[Internet]:
    """A stand-in internet for this process: by the proxy and the authorities of its environment."""
    public, company = Authority("stand-in public authority", folder), Authority("stand-in company", folder)
    internet = Internet(servers, company.pem, allowed)
    (folder / "public.pem").write_text(public.pem)
    with ExitStack() as stack:
        own = stack.enter_context(_running(_Server(internet, company.serve([MIRROR_HOST]))))
        others = stack.enter_context(_running(_Server(internet, public.serve(sorted(HOSTS)))))
        proxy = stack.enter_context(_running(_Proxy(internet, own, others)))
        address = f"http://127.0.0.1:{proxy.server_port}"
        environment = {"https_proxy": address, "http_proxy": address, "SSL_CERT_FILE": str(folder / "public.pem")}
        stack.enter_context(mock.patch.dict(os.environ, environment))
        # urllib keeps the proxy of its first question
        stack.enter_context(mock.patch.object(urllib.request, "_opener", None))
        for name in ("no_proxy", "NO_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            os.environ.pop(name, None)
        yield internet


@contextmanager
def _running(server: _Kind) -> Iterator[_Kind]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Quiet(http.server.BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Says nothing."""


class _Server(http.server.ThreadingHTTPServer):
    """One TLS server for many host names: the Host header says which is meant."""

    def __init__(self, internet: Internet, context: ssl.SSLContext) -> None:
        class Handler(_Quiet):
            def do_GET(self) -> None:
                host = self.headers["Host"].partition(":")[0]
                answer = internet.servers.answer(host, self.path, dict(self.headers))
                body, status = answer.body, answer.status
                wanted = self.headers.get("Range", "")
                if wanted and status == 200:
                    first, _, last = wanted.removeprefix("bytes=").partition("-")
                    body, status = body[int(first) : int(last) + 1 if last else None], 206
                self.send_response(status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        super().__init__(("127.0.0.1", 0), Handler)
        self._context = context

    def finish_request(self, request: Any, client_address: Any) -> None:
        """In the thread of the connection: a client that distrusts the certificate ends it, and nothing else."""
        try:
            with self._context.wrap_socket(request, server_side=True) as wrapped:
                super().finish_request(wrapped, client_address)
        except (ssl.SSLError, ConnectionError):
            return


class _Proxy(http.server.ThreadingHTTPServer):
    """Connects to servers that it knows by name, and to nothing else."""

    def __init__(self, internet: Internet, own: _Server, others: _Server) -> None:
        class Handler(_Quiet):
            def do_CONNECT(self) -> None:
                host = self.path.partition(":")[0]
                if not internet.lets(host):
                    self.send_error(403, "not on the list")
                    return
                server = own if host == MIRROR_HOST else others
                with socket.create_connection(("127.0.0.1", server.server_port)) as far:
                    self.send_response(200)
                    self.end_headers()
                    _pass_on(self.connection, far)
                self.close_connection = True

            def do_GET(self) -> None:
                internet.refused.add(self.path)
                self.send_error(403, "https alone")

        super().__init__(("127.0.0.1", 0), Handler)


def _pass_on(near: socket.socket, far: socket.socket) -> None:
    """Bytes in both directions until one side is done."""
    other = {near: far, far: near}
    while True:
        ready, _, _ = select.select(list(other), [], [], 30)
        if not ready:
            return
        for side in ready:
            try:
                data = side.recv(1 << 16)
            except ConnectionError:
                return
            if not data:
                return
            other[side].sendall(data)
