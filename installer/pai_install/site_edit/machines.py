"""Edits machines in the text of layout.yaml: add, remove, mark as absent. Comments stay. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pai_install.site_edit.items import with_item, without_item
from pai_install.site_edit.spans import Span, read_spans
from pai_install.site_edit.values import with_value
from pai_install.site_edit.write import Value

_LIST = "machine-list"
_MARK = "\ufeff"


def with_machine(text: str, entry: Mapping[str, Value]) -> str:
    """With a machine at the end of machine-list. Raises EditError."""
    return _marked(text, with_item(text.removeprefix(_MARK), (_LIST,), entry))


def without_machines(text: str, names: Collection[str]) -> str:
    """Returns the text without these machines. Missing ones are ignored. Raises EditError."""
    made = text.removeprefix(_MARK)
    for name in names:
        number = _number(made, name)
        made = made if number is None else without_item(made, (_LIST,), number)
    return _marked(text, made)


def with_absent(text: str, names: Collection[str]) -> str:
    """With these machines marked as absent. Raises EditError."""
    return _with_key(text, names, "absent", "true")


def with_present(text: str, names: Collection[str]) -> str:
    """With these machines no longer absent. Raises EditError."""
    return _with_key(text, names, "absent", "false")


def with_values(text: str, name: str, values: Mapping[str, str]) -> str:
    """With other values of a machine. Raises EditError."""
    for key, value in values.items():
        text = _with_key(text, (name,), key, value)
    return text


def _with_key(text: str, names: Collection[str], key: str, value: str) -> str:
    made = text.removeprefix(_MARK)
    for name in names:
        number = _number(made, name)
        made = made if number is None else with_value(made, (_LIST, number), key, value)
    return _marked(text, made)


def _number(text: str, name: str) -> int | None:
    """Where a machine stands in the list, by its host name as it is written."""
    root = read_spans(text)
    place = root.number(_LIST) if root is not None and root.kind == "mapping" else None
    entries = () if root is None or place is None else root.values[place].items
    return next((number for number, entry in enumerate(entries) if _name(entry) == name), None)


def _name(entry: Span) -> str:
    key = entry.number("hostname") if entry.kind == "mapping" else None
    return "" if key is None else entry.values[key].value


def _marked(before: str, made: str) -> str:
    """With the byte order mark that the file had."""
    return _MARK + made if before.startswith(_MARK) else made
