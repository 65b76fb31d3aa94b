"""Numbers in the words of machines."""

from __future__ import annotations

# what 64 bits hold; Python refuses to read thousands of digits, and a float holds no number of hundreds
_DIGITS = 20


def whole(text: str) -> int | None:
    """Returns a counter's value, or None for no number or a number longer than any counter."""
    word = text.strip()
    return int(word) if word.isdecimal() and len(word) <= _DIGITS else None
