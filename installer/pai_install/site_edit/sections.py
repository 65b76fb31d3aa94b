"""Whole sections in the text of services-configuration.yaml, put in and taken out. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from pai_install.documents.document import Document
from pai_install.documents.parse import parse_document
from pai_install.documents.scalars import plain_data
from pai_install.site_edit.lines import line_end, line_start, newline, opens_line, with_lines, without_lines
from pai_install.site_edit.spans import EditError, Span, line_of, read_spans

_MARK = "\ufeff"
_REFUSED = "is written in a way that no command edits"


def with_sections(text: str, sections: str) -> str:
    """The text with sections after all that it has. Raises EditError where that would change other sections."""
    bare = text.removeprefix(_MARK)
    rows = sections.splitlines()
    made = with_lines(bare, len(bare), ["", *rows] if bare.strip() else rows) if bare else "\n".join((*rows, ""))
    return _marked(text, _proven(bare, made, _keys(sections)))


def without_sections(text: str, names: Collection[str]) -> str:
    """Returns the text without these sections. Comments above them stay. Raises EditError if this would
    change others.
    """
    bare = text.removeprefix(_MARK)
    made = bare
    for name in names:
        root = read_spans(made) if made.strip() else None
        number = root.number(name) if root is not None and root.kind == "mapping" else None
        if root is None or number is None:
            continue
        key = root.keys[number]
        if root.flow or not opens_line(made, key.start):
            raise EditError(_REFUSED, line_of(made, key.start))
        made = without_lines(made, key.start, root.values[number].end)
    return _marked(text, _proven(bare, made, names))


def with_block(text: str, section: str, key: str, block: str) -> str:
    """Returns the text with a block scalar (`key: |`) in a section, which replaces the existing one.

    Raises EditError if this is impossible or would change other sections.
    """
    bare = text.removeprefix(_MARK)
    root = read_spans(bare) if bare.strip() else None
    number = root.number(section) if root is not None and root.kind == "mapping" else None
    if root is None or number is None:
        return with_sections(text, f"{section}:\n" + "".join(f"{row}\n" for row in _rows(key, block, 2)))
    made = _in_section(bare, root, number, key, block)
    return _marked(text, _proven(bare, made, [section]))


def _in_section(text: str, root: Span, number: int, key: str, block: str) -> str:
    holder, colon = root.values[number], root.colons[number]
    if root.flow or holder.flow or (holder.kind != "mapping" and not holder.absent):
        raise EditError(_REFUSED, line_of(text, holder.start))
    if holder.absent:
        return with_lines(text, colon + 1, _rows(key, block, 2))
    column = holder.keys[0].start - line_start(text, holder.keys[0].start)
    place = holder.number(key)
    if place is None:
        return with_lines(text, holder.end, _rows(key, block, column))
    old, value = holder.keys[place], holder.values[place]
    if not opens_line(text, old.start):
        raise EditError(_REFUSED, line_of(text, old.start))
    start, end = line_start(text, old.start), line_end(text, value.end)
    # A block of text includes its last line end, and what follows that is the next line already.
    if value.end > value.start and text[value.end - 1] in "\r\n":
        end = value.end
    return text[:start] + _joined(text, _rows(key, block, column)) + text[end:]


def _rows(key: str, block: str, column: int) -> list[str]:
    inner = " " * (column + 2)
    return [f"{' ' * column}{key}: |", *(f"{inner}{row}".rstrip() for row in block.splitlines())]


def _joined(text: str, rows: Sequence[str]) -> str:
    return "".join(row + newline(text) for row in rows)


def _keys(sections: str) -> list[str]:
    return re.findall(r"^([a-z-]+):", sections, re.MULTILINE)


def _proven(before: str, made: str, names: Collection[str]) -> str:
    """Returns the new text if all other sections are unchanged."""
    if _others(made, names) != _others(before, names):
        raise EditError("is written in a way that no command edits without changing something else", 1)
    return made


def _others(text: str, names: Collection[str]) -> Any:  # noqa: ANN401 - plain containers
    document = Document("")
    if text.strip():
        parse_document(text, document)
    data = plain_data(document.content)
    return {key: value for key, value in data.items() if key not in names}


def _marked(before: str, made: str) -> str:
    """With the byte order mark that the file had."""
    return _MARK + made if before.startswith(_MARK) else made
