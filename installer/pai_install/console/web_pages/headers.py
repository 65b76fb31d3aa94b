"""Headers between a browser and the web page of a job. Pure.

Browsers keep cookies by host, not by port. So the program in the pod and its scripts share them with the console: no
cookie of the console goes to the pod, and the pod sets none outside its own path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

Headers = Sequence[tuple[str, str]]

# https://www.rfc-editor.org/rfc/rfc9110#name-connection
_OF_CONNECTION = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te"),
        *("trailer", "transfer-encoding", "upgrade"),
    }
)
# a proxy says who asks, and credentials are for the console
_NOT_TO_POD = frozenset({"authorization", "cookie", "host", "forwarded", "x-real-ip", "via"})
# they count for the whole host, for other web pages, or for other sites
_NOT_FROM_POD = frozenset(
    {
        *(
            "alt-svc",
            "cache-control",
            "clear-site-data",
            "date",
            "expires",
            "nel",
            "pragma",
            "public-key-pins",
            "report-to",
        ),
        *("cross-origin-opener-policy", "cross-origin-resource-policy", "reporting-endpoints", "server", "set-cookie"),
        *("referrer-policy", "service-worker-allowed", "strict-transport-security", "x-frame-options"),
    }
)
# cached pages of an ended job would answer for the next job of its name
_ALWAYS = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "frame-ancestors 'self'"),
    ("X-Frame-Options", "SAMEORIGIN"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "same-origin"),
)
# cookies of the console begin with it
_RESERVED = "__"
_COOKIE_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_COOKIE_VALUE = re.compile(r"[\x20-\x3a\x3c-\x7e]{0,4096}")
_MOST_COOKIES = 20
_KEPT_ATTRIBUTES = re.compile(
    r"(httponly|max-age=-?\d{1,10}|expires=[\w ,:+-]{1,40}|samesite=(lax|strict))", re.IGNORECASE
)


def to_pod(headers: Headers) -> list[tuple[str, str]]:
    """The headers of a request for the pod: without credentials of the console, and with its host name."""
    named = _named_by_connection(headers)
    kept = [
        (name, value)
        for name, value in headers
        if name.lower() not in _OF_CONNECTION | _NOT_TO_POD | named and not name.lower().startswith("x-forwarded-")
    ]
    cookies = "; ".join(own_cookies(value for name, value in headers if name.lower() == "cookie"))
    host = [value for name, value in headers if name.lower() == "host"]
    return [
        *(("Host", value) for value in host[:1]),
        *kept,
        *((("Cookie", cookies),) if cookies else ()),
        ("X-Forwarded-Proto", "https"),
    ]


def own_cookies(headers: Iterable[str]) -> Iterator[str]:
    """Yields NAME=VALUE of each cookie that is none of the console."""
    for header in headers:
        for one in header.split(";"):
            name = one.partition("=")[0].strip()
            if name and not name.startswith(_RESERVED):
                yield one.strip()


def cookies_named(headers: Iterable[str], name: str) -> list[str]:
    """The values of cookies of one name. Scripts may add others of that name with another path."""
    pairs = (one.strip().partition("=") for header in headers for one in header.split(";"))
    return [value for found, _, value in pairs if found == name]


def from_pod(headers: Headers, base: str) -> list[tuple[str, str]]:
    """The headers of an answer for the browser. base: path of the web page."""
    named = _named_by_connection(headers)
    kept = [
        (name, value)
        for name, value in headers
        if name.lower() not in _OF_CONNECTION | _NOT_FROM_POD | named and not name.lower().startswith("access-control-")
    ]
    cookies = [value for name, value in headers if name.lower() == "set-cookie"]
    confined = (found for value in cookies[:_MOST_COOKIES] if (found := confined_cookie(value, base)))
    return [*kept, *_ALWAYS, *(("Set-Cookie", value) for value in confined)]


def confined_cookie(cookie: str, base: str) -> str:
    """A cookie of the pod for its own path, "" for one that may be none of the pod's."""
    pair, *attributes = cookie.split(";")
    name, mark, value = pair.partition("=")
    name, value = name.strip(), value.strip()
    if not mark or not _COOKIE_NAME.fullmatch(name) or name.startswith(_RESERVED):
        return ""
    if not _COOKIE_VALUE.fullmatch(value):
        return ""
    kept = [one.strip() for one in attributes if _KEPT_ATTRIBUTES.fullmatch(one.strip())]
    return "; ".join([f"{name}={value}", f"Path={base}", "Secure", *kept])


def _named_by_connection(headers: Headers) -> frozenset[str]:
    """Further headers of one connection."""
    values = (value for name, value in headers if name.lower() == "connection")
    return frozenset(word.strip().lower() for value in values for word in value.split(","))
