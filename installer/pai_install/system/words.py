"""Lists and numbers in sentences; pure. Every room may import this."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime


def shortened(items: Collection[object], most: int = 5, *, separator: str = ", ") -> str:
    """The first `most` items and how many there are besides: "a, b and 3 more"."""
    shown = separator.join(str(item) for item in list(items)[:most])
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown


def plural(count: int, word: str, words: str = "") -> str:
    """A number with its noun: "1 machine", "2 machines"; words: the plural where it is not made with s."""
    return f"{count} {word if count == 1 else words or f'{word}s'}"


def spoken_time(seconds: float) -> str:
    """A time since the epoch as people write it, in UTC; the number itself where it lies outside of all calendars."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{seconds:.0f} s after 1970"
