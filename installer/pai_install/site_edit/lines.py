"""Inserts and deletes lines of a text. Line ends, and a last line without one, stay."""

from __future__ import annotations

import re
from collections.abc import Sequence

_END = re.compile("\r\n|[\r\n]")


def newline(text: str) -> str:
    """How lines end in the text."""
    found = _END.search(text)
    return found[0] if found else "\n"


def line_start(text: str, index: int) -> int:
    """Where the line of a character begins."""
    return max(text.rfind("\n", 0, index), text.rfind("\r", 0, index)) + 1


def line_end(text: str, index: int) -> int:
    """Where the line after that of a character begins, or the text ends."""
    found = _END.search(text, index)
    return found.end() if found else len(text)


def opens_line(text: str, index: int) -> bool:
    """Whether nothing but blanks is before a character in its line."""
    return not text[line_start(text, index) : index].strip(" ")


def with_lines(text: str, index: int, lines: Sequence[str]) -> str:
    """The text with lines after that of the place at which something ends."""
    end = newline(text)
    begun = index > 0 and text[index - 1] in "\r\n"
    place = index if begun else line_end(text, index)
    if place == len(text) and text and text[-1] not in "\r\n":
        return text + "".join(end + line for line in lines)
    return text[:place] + "".join(line + end for line in lines) + text[place:]


def without_lines(text: str, start: int, end: int) -> str:
    """The text without the lines from that of `start` to that of the place at which something ends."""
    first = line_start(text, start)
    last = end if end > start and text[end - 1] in "\r\n" else line_end(text, end)
    rest = text[last:]
    if not rest and text[last - 1 : last] not in ("\n", "\r"):  # the last line had no end, so the new one gets none
        return re.sub("(\r\n|[\r\n])$", "", text[:first]) if first else ""
    return text[:first] + rest
