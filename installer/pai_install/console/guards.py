"""What every request passes first, and every answer last: host names, other sites, and headers for browsers."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from pai_install.console.errors import invalid

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # with no-referrer, browsers send `Origin: null` with our own forms: https://fetch.spec.whatwg.org/#origin-header
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    # web pages of jobs are on this host, at another port
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_METHODS = "GET, POST, PUT, DELETE, OPTIONS"
# kubelets ask the address of their node
_PROBE = "/healthz"
_HTTPS_PORT = 443


class RequestGuard:
    """Refuses foreign host names, and adds headers. names: of the console. api: the whole application is the API."""

    def __init__(self, app: ASGIApp, names: Collection[str], prefix: str = "", *, api: bool = False) -> None:
        self._app, self._prefix, self._api = app, prefix, api
        self._hosts = {name.lower() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        path, headers = scope["path"], Headers(scope=scope)
        if scope["type"] == "websocket":
            refused = self._answer("GET", path, headers, api=False) is not None
            await (WebSocketClose() if refused else self._app)(scope, receive, send)
            return
        of_api = self._api or (self._prefix and path.startswith(f"{self._prefix}/"))

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                found = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    found.setdefault(name, value)
                if of_api:
                    # without credentials: the API takes no cookie, so other pages learn nothing
                    found.setdefault("Access-Control-Allow-Origin", "*")
            await send(message)

        response = self._answer(scope["method"], path, headers, api=bool(of_api))
        shorter = path.rstrip("/")
        if of_api and shorter.startswith(f"{self._prefix}/"):
            # some clients of OpenPAI write a closing slash, which its server ignores
            scope = {**scope, "path": shorter}
        await (response or self._app)(scope, receive, sent)

    def _answer(self, method: str, path: str, headers: Headers, *, api: bool) -> Response | None:
        """The answer to a request that goes no further."""
        # A foreign host name is a sign of DNS rebinding: a web page of others would read answers of the console.
        if path != _PROBE and host_name(headers) not in self._hosts:
            return _refused("this host name is none of the console", api=api)
        if "content-length" in headers and "transfer-encoding" in headers:
            # a proxy in front may believe the other length, and take the rest for another request
            return _refused("this request has two lengths", api=api, ends=True)
        if not path.isprintable():
            return _refused("this address has control characters", api=api)
        if api and method == "OPTIONS":
            allowed = {"Access-Control-Allow-Methods": _METHODS, "Access-Control-Allow-Headers": "*, Authorization"}
            return Response(status_code=204, headers={**allowed, "Access-Control-Max-Age": "600"})
        return None


def host_name(headers: Headers) -> str:
    """The name of the host that is asked, without its port. "" for two of them."""
    hosts = headers.getlist("host")
    # A proxy may believe the first Host header, and a server the second one.
    if len(hosts) != 1:
        return ""
    host = hosts[0].lower()
    name, separator, port = host.rpartition(":")
    if separator and port.isdigit() and port.isascii():
        host = name
    return host.removeprefix("[").removesuffix("]")


def in_url(name: str) -> str:
    """A host name or an address as URLs have it."""
    return f"[{name}]" if ":" in name else name


def origin(host: str, port: int) -> str:
    """The origin of a port of the console. host: as a URL or a browser has it, with or without a port."""
    name = re.sub(r":\d+$", "", host)
    return f"https://{name}" if port == _HTTPS_PORT else f"https://{name}:{port}"


def is_own(headers: Headers) -> bool:
    """Whether a page of the origin that was asked sends the request. The guard knows the host name."""
    return headers.get("origin", "").lower() == f"https://{headers.get('host', '')}".lower()


def _refused(why: str, *, api: bool, ends: bool = False) -> Response:
    """ends: the connection is closed after the answer."""
    error, headers = invalid(why), {"Connection": "close"} if ends else None
    if api:
        return JSONResponse(error.content, error.status, headers)
    return PlainTextResponse(error.message, error.status, headers)
