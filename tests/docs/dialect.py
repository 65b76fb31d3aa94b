"""Lists as Python-Markdown (of MkDocs) reads them, from pages in CommonMark (of GitHub)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

_MARKER = re.compile(r" *(?:[-*+]|\d+[.)]) +")
_INDENT = 4  # of what belongs to a list item, for Python-Markdown


def python_markdown(text: str) -> str:
    """The page `text` with list items indented by 4 columns each, and an empty line before each list."""
    tokens = MarkdownIt().enable("table").parse(text)
    lines = text.splitlines()
    return "\n".join(_lines(lines, _item_widths(tokens, lines), _needing_space(tokens, lines))) + "\n"


def _needing_space(tokens: list[Token], lines: list[str]) -> set[int]:
    """The lines that need an empty line before them: lists after text, and items after one with several parts."""
    items = dict(_places(tokens, "list_item_open"))
    lists = {first for kind in ("bullet", "ordered") for first, _ in _places(tokens, f"{kind}_list_open")}
    after_text = {first for first in lists if first and first - 1 not in items and lines[first - 1].strip()}
    after_parts = {end for first, end in items.items() if end in items and not all(map(str.strip, lines[first:end]))}
    return after_text | after_parts


def _places(tokens: list[Token], kind: str) -> Iterator[tuple[int, int]]:
    """First line and line after the last one."""
    for token in tokens:
        if token.type == kind and token.map:
            yield token.map[0], token.map[1]


def _item_widths(tokens: list[Token], lines: list[str]) -> list[list[int]]:
    """Of each line: the widths of the markers of the list items that it continues, outer first."""
    widths: list[list[int]] = [[] for _ in lines]
    for first, end in _places(tokens, "list_item_open"):
        marker = _MARKER.match(lines[first][sum(widths[first]) :])
        for line in widths[first + 1 : end]:
            line.append(marker.end() if marker else _INDENT)
    return widths


def _lines(lines: list[str], widths: list[list[int]], spaced: set[int]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number in spaced:
            yield ""
        margin = line[: sum(widths[number])]
        rest = line[len(margin) :] if not margin.strip() else line.lstrip()
        yield f"{'': <{_INDENT * len(widths[number])}}{rest}".rstrip()
