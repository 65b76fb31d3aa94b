"""One HTTP request to the web page of a job, and its answer, piece by piece."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx2
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from pai_install.console.web_pages.headers import from_pod, to_pod
from pai_install.console.web_pages.owned import PodPort

_LOG = logging.getLogger("pai_install.console")
# an answer may take long: the door of the visit ends it
_PIECE_S = 60.0
_TIMES = {"timeout": {"connect": 5.0, "read": None, "write": _PIECE_S, "pool": 5.0}}


def new_transport() -> httpx2.AsyncHTTPTransport:
    """Connections to pods. It keeps no cookies and follows no redirects."""
    limits = httpx2.Limits(max_connections=1024, max_keepalive_connections=128, keepalive_expiry=15.0)
    return httpx2.AsyncHTTPTransport(limits=limits, trust_env=False)


class _SenderGone(Exception):  # noqa: N818 - nothing is wrong
    """The browser closed the connection."""


@dataclass
class HttpRelay:
    """A request. base: path of the web page."""

    scope: Scope
    receive: Receive
    send: Send
    base: str
    started: bool = False
    _sent: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, transport: httpx2.AsyncHTTPTransport, page: PodPort, closed: asyncio.Event) -> bool:
        """Answers, until the browser or the visit ends. Returns whether the pod answered."""
        answer = asyncio.create_task(self._answer(transport, page))
        ends = [asyncio.create_task(closed.wait()), asyncio.create_task(self._gone())]
        try:
            await asyncio.wait([answer, *ends], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (answer, *ends):
                task.cancel()
            results = await asyncio.gather(answer, *ends, return_exceptions=True)
        failure = results[0]
        if isinstance(failure, httpx2.HTTPError | httpx2.InvalidURL):
            _LOG.info("the web page at %s:%s does not answer: %s", page.address, page.port, type(failure).__name__)
        elif isinstance(failure, Exception) and not isinstance(failure, _SenderGone):
            raise failure
        return failure is None

    async def _answer(self, transport: httpx2.AsyncHTTPTransport, page: PodPort) -> None:
        headers = Headers(scope=self.scope)
        raw = self.scope["raw_path"] + (b"?" + self.scope["query_string"] if self.scope["query_string"] else b"")
        has_body = "content-length" in headers or "transfer-encoding" in headers
        if not has_body:
            self._sent.set()
        url = httpx2.URL(scheme="http", host=page.address, port=page.port, raw_path=raw)
        content = self._body() if has_body else None
        request = httpx2.Request(self.scope["method"], url, content=content, extensions=_TIMES)
        # all headers are the browser's
        request.headers = httpx2.Headers([*to_pod(headers.items()), *_framing(headers)])
        response = await transport.handle_async_request(request)
        try:
            await self._begin(response)
            assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101 - of this transport
            async for piece in response.stream:
                await self.send({"type": "http.response.body", "body": piece, "more_body": True})
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await response.aclose()

    async def _begin(self, response: httpx2.Response) -> None:
        found = from_pod(response.headers.multi_items(), self.base)
        encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in found]
        self.started = True
        await self.send({"type": "http.response.start", "status": response.status_code, "headers": encoded})

    async def _body(self) -> AsyncIterator[bytes]:
        while True:
            async with asyncio.timeout(_PIECE_S):
                message: Message = await self.receive()
            if message["type"] == "http.disconnect":
                raise _SenderGone
            yield message.get("body", b"")
            if not message.get("more_body"):
                self._sent.set()
                return

    async def _gone(self) -> None:
        """Returns when the browser is gone. It reads nothing before the body is sent."""
        await self._sent.wait()
        while (await self.receive())["type"] != "http.disconnect":
            continue


def _framing(headers: Headers) -> list[tuple[str, str]]:
    """A body without a length goes in chunks."""
    return [("Transfer-Encoding", "chunked")] if "transfer-encoding" in headers else []
