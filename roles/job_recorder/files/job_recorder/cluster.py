"""The few calls to the API server."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

_PAGE = 200
# of one log; what is beyond it is not looked at
_MOST_LOG = 4 * 1024 * 1024
# an object of Kubernetes has 1.5 MiB at most
_MOST_LINE = 8 * 1024 * 1024


class ClusterError(Exception):
    """The API server did not do what it was asked. status: of HTTP; 0 where it did not answer. Without secrets."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Cluster:
    """The API server. token: file of the token. authority: PEM file of its authority; None: plain HTTP, for tests."""

    server: str
    token: Path
    authority: Path | None
    timeout_s: float = 10

    def json(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Mapping[str, Any]:
        """The answer to a request. Raises ClusterError."""
        connection, answer = self._ask(method, path, body, kind, self.timeout_s)
        try:
            return _mapping(answer.read())
        except (OSError, http.client.HTTPException) as error:
            raise ClusterError(f"{method} {path}: {error}") from error
        finally:
            connection.close()

    def pages(self, path: str, query: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        """A list, page by page. Raises ClusterError."""
        asked = {**query, "limit": str(_PAGE)}
        while True:
            page = self.json("GET", f"{path}?{urlencode(asked)}")
            yield page
            further = (page.get("metadata") or {}).get("continue")
            if not further:
                return
            asked["continue"] = further

    def watch(self, path: str, query: Mapping[str, str], lasting_s: int) -> Iterator[Mapping[str, Any]]:
        """Events until the API server ends it. Raises ClusterError."""
        asked = {**query, "watch": "1", "timeoutSeconds": str(lasting_s), "allowWatchBookmarks": "true"}
        connection, answer = self._ask("GET", f"{path}?{urlencode(asked)}", None, "", lasting_s + 15)
        try:
            while line := answer.readline(_MOST_LINE):
                yield _mapping(line)
        except (OSError, http.client.HTTPException) as error:
            raise ClusterError(f"watch {path}: {error}") from error
        finally:
            connection.close()

    def log(self, namespace: str, pod: str, container: str, lines: int, most: int) -> str:
        """The last lines of a container's log, no more than `most` bytes. Raises ClusterError."""
        query = urlencode({"container": container, "tailLines": str(lines)})
        path = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(pod)}/log?{query}"
        connection, answer = self._ask("GET", path, None, "", self.timeout_s)
        try:
            found, read = b"", 0
            while read < _MOST_LOG and (part := answer.read(65536)):
                read += len(part)
                found = (found + part)[-most:]
            return found.decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            raise ClusterError(f"log of {pod}: {error}") from error
        finally:
            connection.close()

    def put(self, path: str, name: str, item: Mapping[str, Any]) -> None:
        """Writes an object, new or not. Raises ClusterError."""
        try:
            self.json("PUT", f"{path}/{quote(name)}", item)
        except ClusterError as error:
            if error.status != http.HTTPStatus.NOT_FOUND:
                raise
            self.json("POST", path, item)

    def delete(self, path: str, options: Mapping[str, Any] | None = None) -> None:
        """Deletes an object, also one that does not exist. options: DeleteOptions. Raises ClusterError."""
        try:
            self.json("DELETE", path, options)
        except ClusterError as error:
            if error.status != http.HTTPStatus.NOT_FOUND:
                raise

    def _ask(
        self, method: str, path: str, body: Any, kind: str, timeout_s: float
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        try:
            headers = {"Accept": "application/json", "Authorization": f"Bearer {self.token.read_text().strip()}"}
            if body is not None:
                headers["Content-Type"] = kind
            connection = self._connection(timeout_s)
        except OSError as error:  # of the token and the authority: says the file's name and no more
            raise ClusterError(f"{error.strerror}: {error.filename}") from error
        try:
            connection.request(method, path, None if body is None else json.dumps(body).encode(), headers)
            answer = connection.getresponse()
            if answer.status // 100 == 2:
                return connection, answer
            said = _mapping_or_empty(answer.read(65536)).get("message") or answer.reason
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise ClusterError(f"{method} {path.partition('?')[0]}: {error}") from error
        connection.close()
        raise ClusterError(f"{method} {path.partition('?')[0]}: {answer.status} {said}", answer.status)

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        parts = urlsplit(self.server)
        if self.authority is None:
            return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_s)
        tls = ssl.create_default_context(cafile=str(self.authority))
        return http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=timeout_s, context=tls)


def _mapping(content: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ClusterError("the answer is not JSON")
    return found


def _mapping_or_empty(content: bytes) -> Mapping[str, Any]:
    try:
        return _mapping(content)
    except ClusterError:
        return {}
