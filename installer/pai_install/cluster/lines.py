"""Lines of a stream. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def lines(parts: Iterable[bytes], limit: int) -> Iterator[bytes]:
    """Yields each line without its end, and a longer one in pieces of `limit` bytes."""
    rest = b""
    for part in parts:
        *whole, rest = (rest + part).split(b"\n")
        for line in whole:
            yield from _pieces(line, limit)
        while len(rest) >= limit:
            yield rest[:limit]
            rest = rest[limit:]
    if rest:
        yield rest


def _pieces(line: bytes, limit: int) -> Iterator[bytes]:
    yield from (line[start : start + limit] for start in range(0, max(len(line), 1), limit))
