"""Requests to API servers over HTTP/1.1: connections that stay open, the next control plane when one is away."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from pai_install.cluster.client import Cancellation, NoClusterError
from pai_install.cluster.http_errors import connection_lost, elects, too_large, unanswered
from pai_install.system.plain import plain_text

JSON = "application/json"
CONNECT_TIMEOUT_S = 15.0
READ_TIMEOUT_S = 30.0
# of one answer, which is a page of a list at most
LARGEST_ANSWER = 256 << 20
# more threads than these open a connection for one request
_KEPT = 16
_CHUNK = 1 << 20
# further tries: an API server ends idle connections, and a proxy those of a server that went away
_TRIES = 3
_BUSY_TRIES = 4
_LONGEST_PAUSE_S = 5.0
# until etcd has another leader
_ELECTION_PAUSES_S = (0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request. what: verb and object in messages. reads: it changes nothing, so it may be made again elsewhere.

    patient: wait and ask again when the API server has too many requests. cancellation: of a stream. largest:
    bytes of the answer.
    """

    what: str
    path: str
    method: str = "GET"
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    kind: str = JSON
    accept: str = JSON
    reads: bool = True
    patient: bool = True
    timeout_s: float = READ_TIMEOUT_S
    cancellation: Cancellation | None = None
    largest: int = LARGEST_ANSWER

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """An answer. host: who gave it. pause_s: when to ask again, as the API server says."""

    host: str
    status: int
    body: bytes
    pause_s: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return _succeeded(self.status)


class NotConnectedError(urllib3.exceptions.HTTPError):
    """No connection came about, so no request was sent. closed: the other side ended it during the handshake."""

    def __init__(self, why: str, *, closed: bool = False) -> None:
        super().__init__(why)
        self.closed = closed

    @classmethod
    def of(cls, error: Exception) -> Self:
        """The counterpart of the error of a connection."""
        ends = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionResetError)
        return cls(_cause(error), closed=isinstance(error, ends))


class _TlsConnection(HTTPSConnection):
    """TLS to an API server."""

    def connect(self) -> None:
        """Connects, and says when that failed, so that the request can go elsewhere."""
        try:
            super().connect()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise NotConnectedError.of(error) from error


class _PlainConnection(HTTPConnection):
    """TCP to an API server behind a proxy on the same machine."""

    def connect(self) -> None:
        """As above."""
        try:
            super().connect()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise NotConnectedError.of(error) from error


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class _PlainPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _PlainConnection


@dataclass(frozen=True, slots=True)
class ApiServer:
    """An API server. name: in messages. certified: its connections have a client certificate."""

    name: str
    pool: urllib3.HTTPConnectionPool
    certified: bool = False


def api_server(
    url: str, *, authority: Path | None = None, certificate: Path | None = None, key: Path | None = None, name: str = ""
) -> ApiServer:
    """An API server by its URL. authority: of its certificate. certificate, key: of the client, both or neither."""
    place = urllib3.util.parse_url(url)
    host = (place.host or "").strip("[]")
    if place.scheme != "https":
        return ApiServer(name or host, _PlainPool(host, place.port, maxsize=_KEPT))
    pool = _TlsPool(
        host,
        place.port,
        maxsize=_KEPT,
        cert_reqs="CERT_REQUIRED",
        ca_certs=str(authority) if authority else None,
        cert_file=str(certificate) if certificate else None,
        key_file=str(key) if key else None,
    )
    return ApiServer(name or host, pool, certified=certificate is not None)


class Connections:
    """Connections to the API servers of a cluster. Several threads may use them."""

    def __init__(self, servers: Sequence[ApiServer]) -> None:
        self._servers = tuple(servers)

    @property
    def certified(self) -> bool:
        """Whether the connections themselves say who asks."""
        return any(one.certified for one in self._servers)

    def send(self, request: ApiRequest, headers: Sequence[tuple[str, str]]) -> ApiResponse:
        """The answer of the first API server that gives one.

        Raises NoClusterError when none does, and ApiError when one took a change and its answer is lost.
        """
        for pause in (*_ELECTION_PAUSES_S, None):
            down: dict[str, str] = {}
            electing = False
            for one in self._servers:
                answer = self._send_to(one, request, headers, down)
                if answer is None:
                    continue
                if not unanswered(answer.status, answer.body, reads=request.reads):
                    self._prefer(one)
                    return answer
                down[one.name], electing = _words(answer.body), electing or elects(answer.body)
            if pause is None or not (electing and request.patient):
                break
            time.sleep(pause)
        raise NoClusterError(down)

    @contextmanager
    def stream(
        self, request: ApiRequest, headers: Sequence[tuple[str, str]]
    ) -> Iterator[tuple[ApiResponse, Iterator[bytes]]]:
        """Yields the head of an answer, and the parts of its body as they come. A refusal is in the head.

        Raises NoClusterError and, when the body breaks off, ConnectionError.
        """
        down: dict[str, str] = {}
        for one in self._servers:
            try:
                answer = _send(one, request, headers)
            except (urllib3.exceptions.HTTPError, OSError) as error:
                down[one.name] = _cause(error)
                continue
            try:
                if request.cancellation is not None:
                    request.cancellation.on_cancel(answer.shutdown)
                # A refusal is short and read as a whole. A stream may never end.
                body = b"" if _succeeded(answer.status) else _body(answer, request)
                if unanswered(answer.status, body, reads=True):
                    down[one.name] = _words(body)
                    continue
                yield ApiResponse(one.name, answer.status, body), _parts(answer)
            finally:
                answer.close()
            self._prefer(one)
            return
        raise NoClusterError(down)

    def close(self) -> None:
        """Ends all connections."""
        for one in self._servers:
            one.pool.close()

    def _send_to(
        self, one: ApiServer, request: ApiRequest, headers: Sequence[tuple[str, str]], down: dict[str, str]
    ) -> ApiResponse | None:
        """The answer of one API server, None without a connection, with the reason in `down`."""
        for _ in range(_TRIES):
            try:
                answer = _patiently(one, request, headers)
            except NotConnectedError as error:
                down[one.name] = _cause(error)
                return None
            except (urllib3.exceptions.HTTPError, OSError) as error:
                # The API server may have carried out the change, so a repetition could do it twice.
                if not request.reads:
                    raise connection_lost(one.name, request.what, _cause(error)) from error
                down[one.name] = _cause(error)
                # The server was silent for the whole timeout. A second try would double the wait.
                if isinstance(error, urllib3.exceptions.TimeoutError):
                    return None
                continue
            return answer
        return None

    def _prefer(self, one: ApiServer) -> None:
        """Asks that API server first from now on."""
        if self._servers[0] is not one:
            self._servers = (one, *(other for other in self._servers if other is not one))


def _patiently(one: ApiServer, request: ApiRequest, headers: Sequence[tuple[str, str]]) -> ApiResponse:
    """The answer once the API server is no longer busy: it carried out nothing before."""
    for number in range(_BUSY_TRIES):
        answer = _once(one, request, headers)
        last = number + 1 == _BUSY_TRIES
        if last or not request.patient or answer.status != HTTPStatus.TOO_MANY_REQUESTS:
            break
        time.sleep(min(answer.pause_s or 1.0, _LONGEST_PAUSE_S))
    return answer


def _once(one: ApiServer, request: ApiRequest, headers: Sequence[tuple[str, str]]) -> ApiResponse:
    answer = _send(one, request, headers)
    try:
        pause = answer.headers.get("Retry-After", "")
        body = _body(answer, request)
        return ApiResponse(one.name, answer.status, body, float(pause) if pause.isdecimal() else 0.0)
    except BaseException:
        # A connection with an unread rest must not return to the pool.
        answer.close()
        raise
    finally:
        answer.release_conn()


def _send(one: ApiServer, request: ApiRequest, headers: Sequence[tuple[str, str]]) -> urllib3.BaseHTTPResponse:
    """The head of the answer. Connects again where nothing was sent, because the other side ended the handshake."""
    for _ in range(_TRIES - 1):
        try:
            return _send_once(one, request, headers)
        except NotConnectedError as error:
            if not error.closed:
                raise
    return _send_once(one, request, headers)


def _send_once(one: ApiServer, request: ApiRequest, headers: Sequence[tuple[str, str]]) -> urllib3.BaseHTTPResponse:
    found = urllib3.HTTPHeaderDict({"Accept": request.accept, "Accept-Encoding": "gzip", "User-Agent": "pai-install"})
    if request.body is not None:
        found["Content-Type"] = request.kind
    for name, value in headers:
        found.add(name, value)
    return one.pool.urlopen(
        request.method,
        request.target,
        body=request.body,
        headers=found,
        # Repetitions are decided above. A redirect would take the token to another host.
        retries=False,
        redirect=False,
        assert_same_host=False,
        preload_content=False,
        timeout=urllib3.Timeout(connect=CONNECT_TIMEOUT_S, read=request.timeout_s),
    )


def _body(answer: urllib3.BaseHTTPResponse, request: ApiRequest) -> bytes:
    """The whole body. Raises PaiError above the limit."""
    parts: list[bytes] = []
    size = 0
    # The limit counts decompressed bytes, because a small gzip body can expand without bound.
    while part := answer.read(_CHUNK, decode_content=True):
        parts.append(part)
        size += len(part)
        if size > request.largest:
            raise too_large(request.what, request.largest)
    return b"".join(parts)


def _parts(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    try:
        yield from answer.stream(65536, decode_content=True)
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise ConnectionError(_cause(error)) from error


def _succeeded(status: int) -> bool:
    return 200 <= status < 300


def _words(body: bytes) -> str:
    return plain_text(body[:400].decode(errors="replace")).strip()


def _cause(error: BaseException) -> str:
    """The words of the innermost error, without addresses of objects."""
    if isinstance(error, NotConnectedError):
        return str(error)
    while True:
        inner = error.__cause__ or next((one for one in error.args if isinstance(one, BaseException)), None)
        if inner is None or inner is error:
            break
        error = inner
    words: Any = error.args[-1] if error.args and isinstance(error.args[-1], str) else error
    return plain_text(f"{getattr(error, 'strerror', None) or words}")[:400] or type(error).__name__
