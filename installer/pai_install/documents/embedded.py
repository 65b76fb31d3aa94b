"""Maps each character of a scalar to its place in the file, in any YAML style.

YAML folds lines, drops indentation, and resolves escapes, but never changes the order of non-space characters. They are
found in the file one after the other.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from pai_install.documents.document import Mark, Text

_PROPERTIES = re.compile(r"\s*(?:[!&]\S*\s+)*")
# the indicator of a block, with its numbers, signs and comment
_BLOCK_HEAD = re.compile(r"[|>][^\n]*")
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
# escapes in double quotes that stand for white space; the end of a line may be escaped, too
_BLANKS = frozenset("tnrvfNLP_ \t\n")


class Places:
    """The places of the characters of `text` in the file's `lines`."""

    def __init__(self, text: Text, lines: Sequence[str]) -> None:
        self._lines = lines
        self._first = text.mark.line - 1
        self._starts = [0, *accumulate(len(line) + 1 for line in lines[self._first :])]
        source = "\n".join(lines[self._first :])
        begin = _PROPERTIES.match(source, text.mark.column - 1)
        start = begin.end() if begin else text.mark.column - 1
        self._block = source[start : start + 1] in {"|", ">"}
        self._offsets = _offsets(str(text), _letters(source, start))

    def at(self, index: int) -> Mark:
        """Returns the place of the character with this number, or of the next non-space character, or the end."""
        if index < len(self._offsets):
            return self._mark(self._offsets[index])
        if not self._offsets:
            return Mark(self._first + 1, 1)
        last = self._mark(self._offsets[-1])
        if self._block:
            return Mark(min(last.line + 1, len(self._lines)), 1)
        return Mark(last.line, last.column + 1)

    def _mark(self, offset: int) -> Mark:
        line = bisect_right(self._starts, offset) - 1
        return Mark(self._first + line + 1, offset - self._starts[line] + 1)


def _offsets(value: str, letters: Iterator[int]) -> array[int]:
    """Returns the offset in the source of each character. A space has the offset of the next letter.

    A space at the end has none.
    """
    found = array("l")
    waiting = 0
    for letter in value:
        if letter.isspace():
            waiting += 1
            continue
        offset = next(letters, None)
        if offset is None:
            break
        found.extend([offset] * (waiting + 1))
        waiting = 0
    return found


def _letters(source: str, start: int) -> Iterator[int]:
    """Yields the offsets of a scalar's non-space characters, and continues after its end."""
    match source[start : start + 1]:
        case "|" | ">":
            head = _BLOCK_HEAD.match(source, start)
            return _plain(source, head.end() if head else start)
        case "'":
            return _single_quoted(source, start + 1)
        case '"':
            return _double_quoted(source, start + 1)
        case _:
            return _plain(source, start)


def _plain(source: str, start: int) -> Iterator[int]:
    for offset in range(start, len(source)):
        if not source[offset].isspace():
            yield offset


def _single_quoted(source: str, start: int) -> Iterator[int]:
    offset = start
    while offset < len(source):
        if not source[offset].isspace():
            yield offset
        offset += 2 if source.startswith("''", offset) else 1


def _double_quoted(source: str, start: int) -> Iterator[int]:
    offset = start
    while offset < len(source):
        letter = source[offset]
        if letter == "\\":
            kind = source[offset + 1 : offset + 2]
            digits = _HEX_DIGITS.get(kind, 0)
            code = source[offset + 2 : offset + 2 + digits]
            if not (kind in _BLANKS or (digits and _is_blank(code))):
                yield offset
            offset += 2 + digits
            continue
        if not letter.isspace():
            yield offset
        offset += 1


def _is_blank(code: str) -> bool:
    try:
        return chr(int(code, 16)).isspace()
    except (ValueError, OverflowError):
        return False
