"""A client of the OCI distribution protocol, plain enough to see what a registry really answers."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import ssl
from dataclasses import dataclass
from typing import Any

MANIFEST_TYPES = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json"


@dataclass(frozen=True)
class Answer:
    """Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def digest(self) -> str:
        """Of the body."""
        return f"sha256:{hashlib.sha256(self.body).hexdigest()}"

    @property
    def error(self) -> str:
        """The code of an error as the specification writes it, e.g. "MANIFEST_UNKNOWN"."""
        (first, *_rest) = json.loads(self.body)["errors"]
        return str(first["code"])

    @property
    def json(self) -> Any:
        """The body read."""
        return json.loads(self.body)


@dataclass(frozen=True)
class DistributionClient:
    """Asks one registry over TLS. authorities: PEM; nothing else is trusted. login: NAME:PASSWORD, or "" for nobody."""

    host: str
    port: int
    authorities: str
    login: str = ""

    def ask(self, path: str, *, method: str = "GET", **headers: str) -> Answer:
        """Asks for /v2/PATH; headers by their name with _ for -. Raises OSError."""
        context = ssl.create_default_context(cadata=self.authorities)
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=60, context=context)
        try:
            connection.request(method, f"/v2/{path}", headers=self._headers(headers))
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, named, answer.read())
        finally:
            connection.close()

    def _headers(self, given: dict[str, str]) -> dict[str, str]:
        found = {"Accept": MANIFEST_TYPES, **{name.replace("_", "-"): value for name, value in given.items()}}
        if self.login:
            found["Authorization"] = f"Basic {base64.b64encode(self.login.encode()).decode()}"
        return found
