"""Storages and grants in the text of services-configuration.yaml. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pai_install.documents.document import Document
from pai_install.documents.parse import parse_document
from pai_install.documents.problem import YamlPath
from pai_install.site_edit.items import with_item, without_item
from pai_install.site_edit.values import with_value
from pai_install.site_edit.write import Item, Value

_CONFIGS: YamlPath = ("extension", "acls", "storageConfigs")
_STORAGES: YamlPath = ("storages",)
_MARK = "\ufeff"


def granted(text: str, group: YamlPath, storage: str) -> str:
    """With the storage in the grants of the group that stands at `group`. Raises EditError."""
    path = (*group, *_CONFIGS)
    return text if _places(text, path, storage) else _marked(text, with_item(_bare(text), path, storage))


def revoked(text: str, group: YamlPath, storage: str) -> str:
    """With the storage in none of the group's grants, however often it was in them. Raises EditError."""
    path = (*group, *_CONFIGS)
    made = _bare(text)
    # From the last to the first: each removal moves the numbers behind it.
    for number in reversed(_places(text, path, storage)):
        made = without_item(made, path, number)
    return _marked(text, made)


def added(text: str, entry: Item) -> str:
    """With another storage. Raises EditError."""
    return _marked(text, with_item(_bare(text), _STORAGES, entry))


def removed(text: str, storage: str) -> str:
    """Returns the text without the storage. Its grants stay. Raises EditError."""
    made = _bare(text)
    for number in reversed(_places(text, _STORAGES, storage)):
        made = without_item(made, _STORAGES, number)
    return _marked(text, made)


def changed(text: str, storage: str, changes: Mapping[str, Value]) -> str:
    """With these keys of the storage's definition set. Raises EditError."""
    made = _bare(text)
    for number in _places(text, _STORAGES, storage)[:1]:
        for key, value in changes.items():
            made = with_value(made, (*_STORAGES, number), key, value)
    return _marked(text, made)


def _places(text: str, path: YamlPath, storage: str) -> list[int]:
    """The numbers of the items that are the storage or its definition."""
    document = Document("")
    parse_document(_bare(text), document)
    found = document.at(path)
    names = [_name(one) for one in found] if isinstance(found, list) else []
    return [number for number, name in enumerate(names) if name == storage]


def _name(item: object) -> str:
    """As the models read it: without blanks around it."""
    return str(item.get("name", "") if isinstance(item, dict) else item).strip()


def _bare(text: str) -> str:
    return text.removeprefix(_MARK)


def _marked(before: str, made: str) -> str:
    """With the byte order mark that the file had."""
    return _MARK + made if before.startswith(_MARK) else made
