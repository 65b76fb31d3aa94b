"""Addresses after a sign-in: only of the console, and of programs on the computer of the person. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit, urlunsplit

from pai_install.console.guards import in_url

_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_LONGEST = 2000


@dataclass(frozen=True, slots=True)
class ReturnAddress:
    """Where a sign-in ends. program: on the computer of the person, which has to agree."""

    url: str
    program: bool = False

    def with_query(self, **values: str) -> str:
        """The address with further values."""
        parts = urlsplit(self.url)
        query = "&".join(filter(None, (parts.query, urlencode(values))))
        return urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))


def own_path(word: str) -> str:
    """A path of the console, or "/" for anything else."""
    return word if _is_path(word) else "/"


def return_address(word: str, names: Collection[str], port: int) -> ReturnAddress | None:
    """Where a client of OpenPAI wants the browser to go, or None for a foreign address."""
    if _is_path(word):
        return ReturnAddress(word)
    scheme, host, given = _parts(word) if _is_plain(word) else ("", "", 0)
    if scheme == "http" and host in _LOCAL and given:
        return ReturnAddress(word, program=True)
    own = set(map(in_url, names))
    if scheme == "https" and host in own and (given or 443) == port:
        return ReturnAddress(word)
    return None


def _parts(word: str) -> tuple[str, str, int]:
    """Scheme, host, and port, which is 0 for none. All empty for an address with a user or a fragment."""
    try:
        parts = urlsplit(word)
        port = parts.port or 0
    except ValueError:
        return "", "", 0
    if "@" in parts.netloc or parts.fragment:
        return "", "", 0
    host = parts.netloc.removesuffix(f":{port}") if port else parts.netloc
    return parts.scheme, host.lower(), port


def _is_path(word: str) -> bool:
    """Browsers take "//HOST" and "/\\HOST" as addresses of another host."""
    return word.startswith("/") and _is_plain(word) and not word.startswith("//")


def _is_plain(word: str) -> bool:
    """Browsers remove tabs and line ends, and take a backslash for a slash."""
    return 0 < len(word) <= _LONGEST and "\\" not in word and word.isascii() and word.isprintable() and " " not in word
