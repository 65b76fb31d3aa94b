"""A stand-in for Azure's blob service: what the cache's content needs of it, in memory, with Azure's words."""

from __future__ import annotations

import re
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from xml.sax.saxutils import escape

from tests.ansible_path import module_util

blob = module_util("pai_blob")
PAGE = 2  # blobs in one answer: lists are longer than that


@dataclass
class BlobService:
    """One account with one container. blobs: name -> content. fails: word in a path -> (status, error code)."""

    account: Any = None
    blobs: dict[str, bytes] = field(default_factory=dict)
    blocks: dict[str, dict[str, bytes]] = field(default_factory=dict)
    fails: dict[str, tuple[int, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def settings(self, **other: str) -> dict[str, str]:
        """As the role has them."""
        return {**self.account._asdict(), **other}

    def answer(self, verb: str, address: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        """Status, error code and body."""
        self.asked.append(f"{verb} {address}")
        for word, (status, code) in self.fails.items():
            if word in address:
                return status, code, b""
        parts = urllib.parse.urlsplit(address)
        given = {name: value for name, value in headers.items() if name != "authorization"}
        if blob.signature(self.account, verb, address, given) != headers.get("authorization"):
            return 403, "AuthenticationFailed", b""
        query = dict(urllib.parse.parse_qsl(parts.query))
        start = f"/{self.account.account}/{self.account.container}"
        if parts.path != start and not parts.path.startswith(f"{start}/"):
            return 404, "ContainerNotFound", b""
        name = urllib.parse.unquote(parts.path[len(start) + 1 :])
        return self._put(name, query, body) if verb == "PUT" else self._get(name, query)

    def _get(self, name: str, query: dict[str, str]) -> tuple[int, str, bytes]:
        if query.get("comp") == "list":
            names = sorted(found for found in self.blobs if found.startswith(query.get("prefix", "")))
            begin = int(query.get("marker", "0"))
            page, marker = names[begin : begin + PAGE], begin + PAGE if begin + PAGE < len(names) else ""
            entries = "".join(
                f"<Blob><Name>{escape(one)}</Name><Properties><Content-Length>{len(self.blobs[one])}</Content-Length>"
                "</Properties></Blob>"
                for one in page
            )
            text = f"<EnumerationResults><Blobs>{entries}</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>"
            return 200, "", text.encode()
        if query.get("restype") == "container":
            return 200, "", b""
        return (200, "", self.blobs[name]) if name in self.blobs else (404, "BlobNotFound", b"")

    def _put(self, name: str, query: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        if query.get("comp") == "block":
            self.blocks.setdefault(name, {})[query["blockid"]] = body
        elif query.get("comp") == "blocklist":
            listed = re.findall(r"<Latest>(.*?)</Latest>", body.decode())
            self.blobs[name] = b"".join(self.blocks[name][one] for one in listed)
        else:
            self.blobs[name] = body
        return 201, "", b""


@contextmanager
def blob_service() -> Iterator[BlobService]:
    """One that listens on a port of this machine."""
    service = BlobService()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            address = f"http://{self.headers['Host']}{self.path}"
            status, code, said = service.answer(self.command, address, headers, body)
            self.send_response(status)
            if code:
                self.send_header("x-ms-error-code", code)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_PUT = _serve  # noqa: N815 - http.server's names

        def log_message(self, *_words: Any) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        service.account = blob.Account("acc", "a2V5", "cache", f"http://127.0.0.1:{server.server_port}/acc")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()
