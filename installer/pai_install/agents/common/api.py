"""Client of the Kubernetes API."""

from __future__ import annotations

import base64
import json
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, Callable
from urllib.parse import quote, urlencode, urlsplit

from pai_install.agents.common.http import Endpoint, HttpError
from pai_install.agents.common.values import InvalidJsonError, Json, LargeJsonError, child, parse_object, text

JSON, MERGE, STRATEGIC = "application/json", "application/merge-patch+json", "application/strategic-merge-patch+json"
# of one response; a page that is larger is requested in smaller pages
_MAX_RESPONSE = 12 * 1024 * 1024
_PAGE = 200
# of one log; the rest is not read
_MAX_LOG = 4 * 1024 * 1024
# after the time that the API server was asked to end a watch in
_WATCH_GRACE_S = 15


class ApiError(Exception):
    """The API server refused a request or did not answer. status: of HTTP, 0 without an answer. Without secrets."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Access:
    """An API server and an identity. tls: None for plain HTTP, in tests."""

    url: str
    tls: ssl.SSLContext | None = None
    token: str = ""


def with_token(url: str, token: Path, authority: Path | None) -> Callable[[], Access]:
    """Returns access by a token. token, authority: files, read at each call. Without authority: plain HTTP."""

    def access() -> Access:
        # The kubelet renews the token of a pod while its program runs, so nothing is kept from the last call.
        tls = None if authority is None else ssl.create_default_context(cafile=str(authority))
        return Access(url, tls, token.read_text().strip())

    return access


def with_kubeconfig(config: Path, identity: Path) -> Callable[[], Access]:
    """Access by a kubeconfig and the certificate and key in one file. Read at each call, as the kubelet renews them."""

    def access() -> Access:
        content = config.read_text()
        server = re.search(r"^\s*server: (\S+)", content, re.MULTILINE)
        authority = re.search(r"certificate-authority-data: (\S+)", content)
        if server is None:
            raise ValueError(f"{config} names no server")
        if authority is None:
            return Access(server.group(1))
        tls = ssl.create_default_context(cadata=base64.b64decode(authority.group(1)).decode())
        tls.load_cert_chain(identity)
        return Access(server.group(1), tls)

    return access


@dataclass(frozen=True)
class Client:
    """access: returns an Access for each call, and may raise OSError and ValueError. timeout_s: of one call."""

    access: Callable[[], Access]
    timeout_s: float = 10

    def json(self, method: str, path: str, body: Any = None, kind: str = JSON, accept: str = JSON) -> Json:
        """The object that the API server returns. kind: media type of the body. Raises ApiError."""
        place = f"{method} {path.partition('?')[0]}"
        with self._open(method, path, body, kind, accept=accept) as response:
            # One byte more tells a large answer from a complete one.
            content = response.read(_MAX_RESPONSE + 1)
        try:
            return parse_object(content, max_size=_MAX_RESPONSE)
        except LargeJsonError as error:
            raise ApiError(f"{place}: {error}", HTTPStatus.REQUEST_ENTITY_TOO_LARGE) from error
        except InvalidJsonError as error:
            raise ApiError(f"{place}: {error}") from error

    def pages(self, path: str, query: Mapping[str, str], accept: str = JSON) -> Iterator[Json]:
        """A list, page by page. Raises ApiError."""
        size, further = _PAGE, ""
        while True:
            more = {"continue": further} if further else {}
            try:
                page = self.json("GET", f"{path}?{urlencode({**query, **more, 'limit': size})}", accept=accept)
            except ApiError as error:
                if error.status != HTTPStatus.REQUEST_ENTITY_TOO_LARGE or size == 1:
                    raise
                # One page of large objects must not stop the whole list.
                size //= 2
                continue
            yield page
            further = text(child(page, "metadata").get("continue"))
            if not further:
                return

    def watch(self, path: str, query: Mapping[str, str], duration_s: int) -> Iterator[Json]:
        """Events until the API server ends the watch. Raises ApiError."""
        # Without bookmarks, a quiet watch would begin again at a version that etcd has compacted.
        options = {"watch": "1", "timeoutSeconds": str(duration_s), "allowWatchBookmarks": "true"}
        target = f"{path}?{urlencode({**query, **options})}"
        with self._open("GET", target, timeout_s=duration_s + _WATCH_GRACE_S) as response:
            while line := response.readline(_MAX_RESPONSE):
                try:
                    yield parse_object(line, max_size=_MAX_RESPONSE)
                except InvalidJsonError as error:
                    raise ApiError(f"watch {path}: {error}") from error

    def log(self, namespace: str, pod: str, container: str, lines: int, max_size: int) -> str:
        """The last lines of a container's log, at most max_size bytes. Raises ApiError."""
        # Not limitBytes: the API server counts it from the first of these lines and would cut off the last ones.
        query = urlencode({"container": container, "tailLines": str(lines)})
        tail, size = b"", 0
        with self._open("GET", f"{object_path('v1', 'pods', namespace, pod)}/log?{query}") as response:
            while size < _MAX_LOG and (part := response.read(65536)):
                size += len(part)
                tail = (tail + part)[-max_size:]
        return tail.decode(errors="replace")

    def put(self, path: str, name: str, item: Json) -> None:
        """Creates or replaces an object. Raises ApiError."""
        try:
            self.json("PUT", f"{path}/{quote(name, safe='')}", item)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            self.json("POST", path, item)

    def delete(self, path: str, options: Json | None = None) -> bool:
        """Deletes an object. Returns False for a missing one. options: DeleteOptions. Raises ApiError."""
        try:
            self.json("DELETE", path, options)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    @contextmanager
    def _open(
        self,
        method: str,
        path: str,
        body: Any = None,
        kind: str = JSON,
        *,
        accept: str = JSON,
        timeout_s: float | None = None,
    ) -> Iterator[HTTPResponse]:
        place = f"{method} {path.partition('?')[0]}"
        try:
            access = self.access()
        except OSError as error:  # names the file of the credentials and nothing else
            raise ApiError(f"{place}: {error.strerror}: {error.filename}") from error
        except ValueError as error:
            raise ApiError(f"{place}: {error}") from error
        headers = {"Accept": accept, **({"Authorization": f"Bearer {access.token}"} if access.token else {})}
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers["Content-Type"] = kind
        url = urlsplit(access.url)
        endpoint = Endpoint(url.hostname or "", url.port or 443, self.timeout_s, access.tls)
        try:
            with endpoint.open(method, path, content, headers, timeout_s) as response:
                if response.status // 100 != 2:
                    raise _refusal(place, response.status, response.read(65536), response.reason)
                yield response
        except HttpError as error:
            raise ApiError(f"{place}: {error}") from error


def _refusal(place: str, status: int, content: bytes, reason: str) -> ApiError:
    try:
        message = text(parse_object(content).get("message"))
    except InvalidJsonError:
        message = ""
    return ApiError(f"{place}: {status} {message or reason}", status)


def object_path(version: str, resource: str, namespace: str, name: str = "") -> str:
    """The path of an object, or of all of a namespace. version: GROUP/VERSION, or v1."""
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    path = f"{root}/namespaces/{quote(namespace, safe='')}/{resource}"
    return f"{path}/{quote(name, safe='')}" if name else path
