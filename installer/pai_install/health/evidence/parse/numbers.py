"""Numbers in the words of machines."""

from __future__ import annotations

# what 64 bits hold; Python refuses to read thousands of digits, and a float holds no number of hundreds
_DIGITS = 20


def whole(text: str) -> int | None:
    """A counter's value; None for what is none, or is longer than a counter can be."""
    word = text.strip()
    return int(word) if word.isdecimal() and len(word) <= _DIGITS else None
