"""The web application on the port of web pages and SSH servers of jobs.

It is another origin than the console, and serves nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from http import HTTPStatus
from ipaddress import IPv4Network

import httpx2
from anyio import to_thread
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from pai_install.console.errors import RestError, forbidden, rest_error
from pai_install.console.guards import RequestGuard, is_own, origin
from pai_install.console.services import ConsoleServices
from pai_install.console.settings import ConsoleSettings, WebPagesSettings
from pai_install.console.streams import StreamGate
from pai_install.console.web_pages import ssh_access
from pai_install.console.web_pages.access import COOKIE, PREFIX, PageAccess, base_path
from pai_install.console.web_pages.doors import Doors
from pai_install.console.web_pages.headers import cookies_named
from pai_install.console.web_pages.http_relay import HttpRelay, new_transport
from pai_install.console.web_pages.owned import OwnedJobs, Visit
from pai_install.console.web_pages.socket_relay import relay
from pai_install.console.web_pages.ssh_access import SshAccess
from pai_install.console.web_pages.stream_relay import relay_stream
from pai_install.errors import PaiError

MOST_OF_USER, MOST_OF_ALL = 64, 512
_READS = ("GET", "HEAD", "OPTIONS")
_METHODS = (*_READS, "POST", "PUT", "PATCH", "DELETE")
_UNREADY = "the web page does not answer: it starts, or it has ended"


def create_web_pages(settings: ConsoleSettings, services: ConsoleServices, pages: WebPagesSettings) -> ASGIApp:
    """The proxy. A foreign host name is refused."""
    return RequestGuard(WebPages(settings, services, pages), settings.names)


@dataclass
class WebPages:
    """Passes requests on to the pods of their owners."""

    settings: ConsoleSettings
    services: ConsoleServices
    pages: WebPagesSettings
    doors: Doors = field(default_factory=Doors)
    gate: StreamGate = field(default_factory=lambda: StreamGate(MOST_OF_USER, MOST_OF_ALL, "open connections"))

    @cached_property
    def jobs(self) -> OwnedJobs:
        """For their owners."""
        return OwnedJobs(self.services, IPv4Network(self.pages.network))

    @cached_property
    def access(self) -> PageAccess:
        """Who may open a web page."""
        return PageAccess(self.services, self.jobs)

    @cached_property
    def ssh_access(self) -> SshAccess:
        """Who may connect to an SSH server."""
        return SshAccess(self.services, self.jobs)

    @cached_property
    def transport(self) -> httpx2.AsyncHTTPTransport:
        """Of the loop that serves."""
        return new_transport()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or one WebSocket."""
        if scope["type"] == "websocket" and scope["path"].startswith(f"{ssh_access.PREFIX}/"):
            await self._stream(WebSocket(scope, receive, send))
        elif scope["type"] == "websocket":
            await self._socket(WebSocket(scope, receive, send))
        elif scope["type"] == "http":
            response = await self._http(scope, receive, send)
            if response is not None:
                await response(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """An answer of the console, or None after one of the pod."""
        headers = Headers(scope=scope)
        user, name = _named(scope["path"])
        try:
            visit = await self._admitted(scope, headers, user, name)
            with self._entered(visit, partial(self.access.still, user, name, visit)) as closed:
                passed = HttpRelay(scope, receive, send, base_path(user, name))
                answered = await passed.run(self.transport, visit.pod, closed)
        except RestError as error:
            return self._refusal(error, scope, headers, user, name)
        if answered or passed.started:
            return None
        return PlainTextResponse(_UNREADY, 502)

    async def _socket(self, socket: WebSocket) -> None:
        user, name = _named(socket.scope["path"])
        try:
            visit = await self._admitted(socket.scope, socket.headers, user, name)
            with self._entered(visit, partial(self.access.still, user, name, visit)) as closed:
                await relay(socket, visit.pod, closed)
        except RestError:
            await socket.close()

    async def _stream(self, socket: WebSocket) -> None:
        """A client that is no browser learns why it is refused."""
        named = socket.scope["path"].removeprefix(f"{ssh_access.PREFIX}/")
        user, mark, name = named.partition("~")
        user, name = (user, name) if mark else ("", named)
        try:
            visit = await _asked(partial(self.ssh_access.admit, socket, user, name))
            with self._entered(visit, partial(self.ssh_access.still, socket, user, name, visit)) as closed:
                await relay_stream(socket, visit.pod, closed)
        except RestError as error:
            await socket.send_denial_response(PlainTextResponse(error.message, error.status, headers=error.headers))

    async def _admitted(self, scope: Scope, headers: Headers, user: str, name: str) -> Visit:
        """The visit of a request. Raises RestError."""
        if scope["type"] == "http" and scope["method"] not in _METHODS:
            raise RestError(HTTPStatus.METHOD_NOT_ALLOWED, "InvalidParametersError", "this method is not passed on")
        if headers.get("service-worker"):
            # it would stay in the browser, and answer for the next job of this name
            raise forbidden("web pages of jobs have no service workers")
        if (scope["type"] == "websocket" or scope["method"] not in _READS) and not is_own(headers):
            raise forbidden("this request comes from another site")
        cookies = cookies_named(headers.getlist("cookie"), COOKIE)
        return await _asked(partial(self.access.admit, user, name, cookies))

    @contextmanager
    def _entered(self, visit: Visit, still: Callable[[], bool]) -> Iterator[asyncio.Event]:
        """Counts a connection of a visit. Raises RestError for one too many."""
        with self.gate.held(visit.caller.name), self.doors.entered(visit, still) as closed:
            yield closed

    def _refusal(self, error: RestError, scope: Scope, headers: Headers, user: str, name: str) -> Response:
        """A person goes to the page of the job, which opens the web page again."""
        if error.status == 403 and scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate" and name:
            path = base_path(user, name).removeprefix(PREFIX).rstrip("/")
            return RedirectResponse(f"{origin(headers['host'], self.settings.port)}/jobs{path}", 303)
        return PlainTextResponse(error.message, error.status, headers=error.headers)


async def _asked(admit: Callable[[], Visit]) -> Visit:
    """What a thread decides. Raises RestError."""
    try:
        return await to_thread.run_sync(admit)
    except PaiError as error:
        raise rest_error(error) from error


def _named(path: str) -> tuple[str, str]:
    """User and job of a path, ("", "") for another one."""
    found = path.removeprefix(f"{PREFIX}/")
    user, mark, name = found.partition("/")[0].partition("~")
    return (user, name) if found != path and mark else ("", "")
