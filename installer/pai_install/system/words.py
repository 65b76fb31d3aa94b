"""Lists and numbers in sentences. Pure. Every package may import this."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime


def shortened(items: Collection[object], most: int = 5, *, separator: str = ", ") -> str:
    """The first `most` items and how many there are besides: "a, b and 3 more"."""
    shown = separator.join(str(item) for item in list(items)[:most])
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown


def clipped(text: str, most: int) -> str:
    """Returns a text of at most `most` characters. A longer one ends with "..."."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def plural(count: int, word: str, words: str = "") -> str:
    """Returns a number with its noun: "1 machine", "2 machines". words: an irregular plural."""
    return f"{count} {word if count == 1 else words or f'{word}s'}"


def minute_text(time: datetime) -> str:
    """Returns a time in UTC, to the minute."""
    return f"{time:%Y-%m-%d %H:%M} UTC"


def spoken_time(seconds: float) -> str:
    """Returns a time since the epoch in readable form, in UTC, or the number itself if no calendar has it."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{seconds:.0f} s after 1970"
