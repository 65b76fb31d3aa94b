"""One value as a tool printed it: a number or word, not available, an error, or not there at all."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache


class State(Enum):
    """The kind of a reading. Only VALUE may lead to PASS."""

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
# What NVML says instead of a value: the words of its error codes.
_NVML_ERRORS = {
    "already initialized",
    "argument version mismatch",
    "corrupted inforom",
    "driver not loaded",
    "function not found",
    "gpu not found",
    "in use by another client",
    "insufficient external power",
    "insufficient memory",
    "insufficient resources",
    "insufficient size",
    "interrupt request issue",
    "invalid argument",
    "invalid state",
    "no data",
    "not ready",
    "nvml shared library not found",
    "operating system call failed",
    "resource not found",
    "rm has detected an nvml/rm version mismatch",
    "system is not in ready state",
    "the operating system has blocked the request",
    "timeout",
    "uninitialized",
}
# "16x", "-8 C", "7015 us", "100%"; neither 0x7f nor 1e400
_NUMBER = re.compile(r"^-?\d{1,20}(?:\.\d+)?(?=$|\s|%|x$|(?!x)[A-Za-z\u00b5]+$)")


def is_nvml_error(text: str) -> bool:
    """Whether a text is one of the error codes of NVML in words. The status of the fabric is one by design."""
    return text.lower().strip("[]. ") in _NVML_ERRORS


@dataclass(frozen=True, slots=True)
class Reading:
    """A text and its interpretation. `text` is '' if ABSENT.

    number: leading number of a VALUE ("16x", "-8 C", "7015 us"), or None.
    """

    state: State
    text: str = ""
    number: float | None = None


ABSENT = Reading(State.ABSENT)


@lru_cache(maxsize=8192)  # a thousand machines of one kind print the same words
def parse_reading(text: str | None) -> Reading:
    """Classifies a text. None and '' are ABSENT."""
    text = (text or "").strip()
    if not text:
        return ABSENT
    if text.lower() in _NOT_AVAILABLE:
        return Reading(State.NOT_AVAILABLE, text)
    if _ERROR.search(text) or is_nvml_error(text):
        return Reading(State.ERROR, text)
    match = _NUMBER.match(text)
    return Reading(State.VALUE, text, float(match.group()) if match else None)
