"""A key of a mapping somewhere in a YAML text, set. Every edit is read back before it counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pai_install.documents.document import Document
from pai_install.documents.parse import parse_document
from pai_install.documents.problem import YamlPath
from pai_install.documents.scalars import plain_data
from pai_install.site_edit.lines import line_start, with_lines
from pai_install.site_edit.spans import EditError, Span, line_of, read_spans
from pai_install.site_edit.write import FLAGS, Value, flow


def with_value(text: str, path: YamlPath, key: str, value: Value) -> str:
    """Returns the text with the key set in the mapping at `path`, on one line.

    Raises EditError if this is impossible or would change other values.
    """
    node = _at(text, path)
    made = _set(text, node, key, value)
    wanted = _data(text)
    _reached(wanted, path)[key] = _plain(value)
    if _data(made) != wanted:
        message = "is written in a way that no command edits without changing something else (*alias, << or a tag?)"
        raise EditError(message, line_of(text, node.start))
    return made


def _set(text: str, node: Span, key: str, value: Value) -> str:
    number = node.number(key)
    if number is None:
        return _added(text, node, f"{key}: {flow(value)}")
    old, colon = node.values[number], node.colons[number]
    if (
        old.kind == "alias"
        or colon < 0
        or text[old.start : old.start + 1] in ("&", "!")
        # A comment between the key and its value would end up inside or beside the new value.
        or "#" in _after(text, colon, old)
    ):
        raise EditError("is written in a way that no command edits", line_of(text, old.start))
    return f"{text[: colon + 1]} {flow(value)}{text[old.end :]}"


def _after(text: str, colon: int, old: Span) -> str:
    """Returns the text after the old value, where a comment could be."""
    return text[colon + 1 : old.start if old.kind == "scalar" else old.end]


def _added(text: str, node: Span, row: str) -> str:
    if node.flow:
        end = node.values[-1].end
        return f"{text[:end]}, {row}{text[end:]}"
    first = node.keys[0].start
    return with_lines(text, node.end, [" " * (first - line_start(text, first)) + row])


def _at(text: str, path: YamlPath) -> Span:
    """The mapping at `path`."""
    node = read_spans(text)
    for part in path:
        assert node is not None  # noqa: S101 - the path leads somewhere
        inner = node.items if isinstance(part, int) else node.values
        number = part if isinstance(part, int) else node.number(part)
        if number is None or number >= len(inner):
            raise EditError("is written in a way that no command edits", line_of(text, node.start))
        node = inner[number]
    if node is None or node.kind != "mapping" or not node.keys:
        raise EditError("is written in a way that no command edits", line_of(text, node.start if node else 0))
    return node


def _data(text: str) -> Any:  # noqa: ANN401 - plain containers
    document = Document("")
    parse_document(text, document)
    return plain_data(document.root) if not document.problems else None


def _reached(data: Any, path: YamlPath) -> Any:  # noqa: ANN401 - plain containers
    for part in path:
        data = data[part]
    return data


def _plain(value: Value) -> object:
    if isinstance(value, str):
        return value == "true" if value in FLAGS else value  # written plain
    return dict(value) if isinstance(value, Mapping) else list(value)
