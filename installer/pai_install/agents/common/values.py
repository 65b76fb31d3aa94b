"""Foreign JSON, read with limits. Pure.

Everything that a member or a node writes is foreign: annotations, conditions, logs, whole objects.
Content below the limit of depth is dropped, so that no one can hide an object by nesting one of its fields.
"""

from __future__ import annotations

import json
import math
import re
import time
from calendar import timegm
from collections.abc import Mapping
from typing import Any, TypeVar

Json = Mapping[str, Any]
T = TypeVar("T")

# Kubernetes' own objects have fewer than 20 levels
MAX_DEPTH = 48
# JSON inside of a string, such as an annotation
MAX_TEXT = 256 * 1024
MAX_VALUES = 1_000_000
# as 64 bits need
_MAX_DIGITS = 20
_BLANK = re.compile(r"[ \t\n\r]*")
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


class InvalidJsonError(ValueError):
    """A text is not JSON. The message does not repeat the text."""


class LargeJsonError(InvalidJsonError):
    """A text is larger than the limits allow."""


def parse_all(
    content: bytes | str, *, max_size: int = MAX_TEXT, max_depth: int = MAX_DEPTH, max_values: int = MAX_VALUES
) -> list[Any]:
    """Returns the values of concatenated JSON texts. Containers below max_depth are empty. Infinite numbers are None.

    max_size: bytes or characters. Raises InvalidJsonError.
    """
    if len(content) > max_size:
        raise LargeJsonError(f"it has {len(content)} bytes, at most {max_size} are allowed")
    try:
        text = content.decode() if isinstance(content, bytes) else content
        try:
            values = _load(text)
        # Python's decoder recurses. A member could nest an annotation deeper than its stack.
        except RecursionError:
            values = _load(_flattened(text, max_depth))
    except ValueError as error:
        raise InvalidJsonError("it is not JSON") from error
    _prune(values, max_depth + 1, max_values)
    return values


def parse(content: bytes | str, **limits: int) -> Any:
    """The value of one JSON text, with the limits of `parse_all`. Raises InvalidJsonError."""
    values = parse_all(content, **limits)
    if len(values) != 1:
        raise InvalidJsonError("it is not one JSON text")
    return values[0]


def parse_object(content: bytes | str, **limits: int) -> Json:
    """The object of a JSON text, with the limits of `parse_all`. Raises InvalidJsonError."""
    value = parse(content, **limits)
    if not isinstance(value, dict):
        raise InvalidJsonError("it is not a JSON object")
    return value


def _integer(digits: str) -> int | None:
    # The time of int() grows with the square of the digits.
    return int(digits) if len(digits) <= _MAX_DIGITS else None


def _float(digits: str) -> float | None:
    value = float(digits)
    # 1e999 is valid JSON and becomes infinity, which no sum survives.
    return value if math.isfinite(value) else None


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=lambda _: None)


def _load(text: str) -> list[Any]:
    values = []
    place = _BLANK.match(text).end()  # type: ignore[union-attr]
    while place < len(text):
        value, place = _DECODER.raw_decode(text, place)
        place = _BLANK.match(text, place).end()  # type: ignore[union-attr]
        values.append(value)
    return values


def _flattened(text: str, max_depth: int) -> str:
    """The text with null in place of each container below max_depth."""
    kept: list[str] = []
    start = depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] in ("[", "{"):
            depth += 1
            if depth == max_depth + 1:
                kept += (text[start : token.start()], "null")
                start = len(text)
        elif token[0] in ("]", "}"):
            if depth == max_depth + 1:
                start = token.end()
            depth -= 1
    return "".join((*kept, text[start:]))


def _prune(values: list[Any], max_depth: int, max_values: int) -> None:
    """Empties the containers below max_depth in place. Raises LargeJsonError for too many values."""
    level: list[Any] = [values]
    count = 0
    for _ in range(max_depth):
        count += sum(map(len, level))
        if count > max_values:
            raise LargeJsonError(f"it has more than {max_values} values")
        # Level by level in place of a recursion, which deep values would break again.
        below = (entry for node in level for entry in (node.values() if isinstance(node, dict) else node))
        level = [entry for entry in below if isinstance(entry, (dict, list))]
    for node in level:
        node.clear()


def child(value: Any, *path: str) -> Json:
    """Returns the mapping at a path, or an empty one."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def rows(value: Any) -> list[Json]:
    """Returns the mappings in a list, or [] for any other value."""
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """Returns a string that can be encoded, or "" for any other value."""
    if not isinstance(value, str):
        return ""
    # JSON may hold half a surrogate pair. A later print or request would fail on it.
    return value if value.isascii() else value.encode(errors="replace").decode()


def number(value: Any) -> int | None:
    """Returns a whole number from 0 on, or None for any other value."""
    # In Python, True is an int.
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def meta(item: Any, name: str) -> str:
    """A string of an object's metadata."""
    return text(child(item, "metadata").get(name))


def seconds(timestamp: str) -> float:
    """Returns a timestamp of Kubernetes in seconds since 1970, or 0 for any other value."""
    try:
        return timegm(time.strptime(timestamp, "%Y-%m-%dT%H:%M:%SZ"))
    except (ValueError, OverflowError):
        return 0


def fitting(entries: Mapping[str, T], max_bytes: int) -> dict[str, T]:
    """Returns the first entries that have at most max_bytes together. Larger entries are left out."""
    kept: dict[str, T] = {}
    for name, entry in entries.items():
        size = len(name) + len(entry.encode() if isinstance(entry, str) else json.dumps(entry)) + 8
        if size <= max_bytes:
            max_bytes -= size
            kept[name] = entry
    return kept
