"""One value as a tool printed it: a number or word, not available, an error, or not there at all."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache


class State(Enum):
    """What kind of answer it is; only VALUE may lead to PASS."""

    VALUE = "value"
    NOT_AVAILABLE = "not available"
    ERROR = "error"
    ABSENT = "absent"


_NOT_AVAILABLE = {
    "n/a",
    "[n/a]",
    "not supported",
    "[not supported]",
    "requested functionality has been deprecated",
    "[requested functionality has been deprecated]",
    "not available",
}
_ERROR = re.compile(
    r"unknown error|\berr!|gpu is lost|requires reset|insufficient permissions|\[unknown|not found\]?$"
    r"|access blocked|^unknown$|^error\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"^-?\d+(?:\.\d+)?(?=$|[ x%]|[a-zA-Z])")


@dataclass(frozen=True, slots=True)
class Reading:
    """A text and what it means. `text` is '' when ABSENT.

    number: what a VALUE starts with ("16x", "-8 C", "7015 us"), None when that is no number.
    """

    state: State
    text: str = ""
    number: float | None = None


ABSENT = Reading(State.ABSENT)


@lru_cache(maxsize=8192)  # a thousand machines of one kind print the same words
def parse_reading(text: str | None) -> Reading:
    """Classifies a text; None and '' are ABSENT."""
    text = (text or "").strip()
    if not text:
        return ABSENT
    if text.lower() in _NOT_AVAILABLE:
        return Reading(State.NOT_AVAILABLE, text)
    if _ERROR.search(text):
        return Reading(State.ERROR, text)
    match = _NUMBER.match(text)
    return Reading(State.VALUE, text, float(match.group()) if match else None)
