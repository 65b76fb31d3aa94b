"""How a server is asked: login, trust, a token that ends, and a server that asks to come back later."""

from __future__ import annotations

import base64
import email.utils
import ssl
import time
import urllib.error
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pai_install.errors import PaiError

_DOCKER_HUB = ("registry-1.docker.io", "auth.docker.io", "docker.io")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Access:
    """Parameters of all requests to one server.

    headers: include credentials, which never go to other servers after a redirect. trust: None for the system's
    authorities. renew: called after status 401, puts new credentials into `headers` or raises PaiError. timeout_s:
    maximum silence. waits_s: maximum total wait if the server requests retries.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    trust: ssl.SSLContext | None = None
    renew: Callable[[urllib.error.HTTPError], None] | None = None
    timeout_s: float = 60.0
    waits_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Mirror:
    """A server that replaces the upstream ones. Without a url there is none.

    username, password: its credentials, "" for none. authorities: certificates (PEM) in addition to the system's.
    """

    url: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    authorities: str = ""

    def of(self, url: str) -> str:
        """Returns the same file below the mirror (MIRROR/HOST/PATH), or the url itself without a mirror."""
        return f"{self.url.rstrip('/')}/{url.partition('://')[2]}" if self.url else url

    def login(self) -> dict[str, str]:
        """Returns the header with the credentials, or {}."""
        if not self.username:
            return {}
        words = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        return {"Authorization": f"Basic {words}"}

    def access(self) -> Access:
        """How its files are asked for."""
        return Access(self.login(), self._trust())

    def _trust(self) -> ssl.SSLContext | None:
        """Returns a context with the system's and its own authorities, or None without its own."""
        if not self.authorities:
            return None
        context = ssl.create_default_context()
        context.load_verify_locations(cadata=self.authorities)
        return context


UPSTREAM = Mirror()
ANYBODY = Access()


def in_a_hurry(access: Access) -> Access:
    """The same for a question that a user waits for: it ends soon."""
    return replace(access, timeout_s=10.0, waits_s=0.0)


def answered(access: Access, send: Callable[[], _Answer]) -> _Answer:
    """What `send` gives. After a 401, which a token's end is too, it logs in and sends once more."""
    try:
        return send()
    except urllib.error.HTTPError as error:
        if access.renew is None or error.code != 401:
            raise
        access.renew(error)
    return send()


def requested_pause_s(error: urllib.error.HTTPError) -> float | None:
    """Returns the seconds after which the server accepts a retry, or None."""
    words = error.headers.get("Retry-After", "") if error.code in (429, 503) else ""
    if words.isdecimal():
        return float(words)
    # Retry-After may also be a date.
    moment = email.utils.mktime_tz(parsed) if (parsed := email.utils.parsedate_tz(words)) else None
    return None if moment is None else max(0.0, moment - time.time())


def refused(url: str, error: urllib.error.HTTPError) -> PaiError:
    """Returns the error for the admin if a server responds with an error."""
    message = f"cannot fetch {url}: the server answered {error.code} {error.reason}"
    host = urllib.parse.urlsplit(url).hostname or url
    if error.code == 429:
        return PaiError(_too_many(message, host, requested_pause_s(error)), code="server-rate-limit", remedy=_LESS)
    if error.code == 401:
        return PaiError(
            f"{message}, and rejects the login",
            code="download-login-rejected",
            remedy="check component_mirror_username and component_mirror_password, or choose another component source",
        )
    return PaiError(
        message,
        code="download-refused",
        remedy="check the component source of the site, and the access of this host to it",
    )


_LESS = (
    "repeat the command later, which keeps fetched components. Or set component_source to a bundle, or to a mirror "
    "with a login"
)


def _too_many(message: str, host: str, pause_s: float | None) -> str:
    """Names the limit, and when it ends as far as the server says so."""
    when = "" if pause_s is None else f", and allows the next request in {pause_s:.0f} s"
    if host in _DOCKER_HUB:
        return (
            f"{message}: Docker Hub limits anonymous pulls per address, and hosts behind one NAT share an address{when}"
        )
    return f"{message}: {host} limits how much one address may fetch{when}"
