"""The text of a job's file as it was meant: several documents, and what is no escape in JSON. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

# the pieces of JSON: text in quotes, with its escapes
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NO_ESCAPE = re.compile(r'\\(?:["\\/bfnrtu\n]|(.))', re.DOTALL)
_DOCUMENT = re.compile(r"^---(?=[ \t\n]|$)", re.MULTILINE)


@dataclass(frozen=True)
class Unescaped:
    """A text without the signs before what is no escape. removed: their places in the text as it was."""

    text: str
    removed: tuple[int, ...]

    @property
    def origin(self) -> Callable[[int], int]:
        """Where a character of the text stood before."""
        starts = [place - number for number, place in enumerate(self.removed)]
        return lambda index: index + bisect_right(starts, index)


def unescaped(text: str) -> Unescaped:
    r"""JSON with `\$` read as `$`, and so each letter that JSON does not escape: shells and web pages write them."""
    removed = [
        quoted.start() + escape.start()
        for quoted in _QUOTED.finditer(text)
        for escape in _NO_ESCAPE.finditer(quoted[0])
        if escape[1]
    ]
    pieces, before = [], 0
    for place in removed:
        pieces.append(text[before:place])
        before = place + 1
    return Unescaped("".join([*pieces, text[before:]]), tuple(removed))


def documents(text: str, most: int) -> list[str]:
    """The documents of a YAML file that say anything, each with its lines where they are in the file.

    One more than the most are enough to say that there are too many.
    """
    found: list[str] = []
    start = lines = 0
    for mark in chain(_DOCUMENT.finditer(text), (None,)):
        part = text[start : mark.start() if mark else len(text)]
        if any(map(_has_text, part.split("\n"))):
            # Empty lines before a document keep its line numbers, and three spaces stand for its dashes.
            found.append("\n" * lines + ("   " if start else "") + part)
        if len(found) > most:
            break
        end = mark.end() if mark else len(text)
        lines, start = lines + text.count("\n", start, end), end
    return found


def _has_text(line: str) -> bool:
    word = line.strip()
    # a document that is `null` is an empty one
    return word.partition(" #")[0].rstrip() not in ("", "...", "null", "Null", "NULL", "~") and word[0] not in "#%"
