"""Files with templates: a job file, or items of OpenPAI's marketplace in JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pai_install.agents.common.values import InvalidJsonError, parse
from pai_install.jobs.template import MAX_DESCRIPTION, tags_of

_MOST_ITEMS = 1_000
# of an item: what other people say about it is not kept
_TEXTS = ("summary", "introduction", "description")


@dataclass(frozen=True, slots=True)
class TemplateDraft:
    """A template before it is checked. problem: why it cannot be one, or ""."""

    title: str
    content: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ImportedTemplate:
    """What became of an item of a file. problem: why it is no template, "" for a template."""

    name: str
    title: str
    problem: str = ""


def read_drafts(raw: bytes, name: str, most: int) -> Iterator[TemplateDraft]:
    """The drafts of a file. name: of the file, for a job file. most: bytes."""
    if len(raw) > most:
        yield TemplateDraft(name, problem=f"the file has more than {most // 1024**2} MiB")
        return
    try:
        content = raw.decode()
    except UnicodeDecodeError:
        yield TemplateDraft(name, problem="the file is not UTF-8")
        return
    items = _items(content)
    if items is None:
        yield TemplateDraft(name, content)
        return
    for number, item in enumerate(items):
        if number == _MOST_ITEMS:
            yield TemplateDraft(name, problem=f"the file has more than {_MOST_ITEMS} items")
            return
        yield _draft(item, f"{name} {number + 1}")


def _items(content: str) -> list[object] | None:
    """The items of a marketplace, or None for a job file."""
    try:
        found = parse(content, max_size=len(content))
    except InvalidJsonError:
        return None
    if isinstance(found, Mapping):
        found = found.get("items", [found] if "protocol" in found else None)
    return found if isinstance(found, list) else None


def _draft(item: object, usual: str) -> TemplateDraft:
    if not isinstance(item, Mapping):
        return TemplateDraft(usual, problem="it is no item of a marketplace")
    title = item.get("name")
    title = title if isinstance(title, str) and title.strip() else usual
    content = item.get("protocol") or item.get("jobConfig")
    if item.get("type") == "data":
        return TemplateDraft(title, problem="it is data, not a job")
    if not isinstance(content, str):
        return TemplateDraft(title, problem="it has no job file in protocol")
    categories = item.get("categories")
    tags = [*(categories if isinstance(categories, list) else [categories]), *_list(item.get("tags"))]
    description = next((text for key in _TEXTS if isinstance(text := item.get(key), str) and text.strip()), "")
    return TemplateDraft(title, content, description.strip()[:MAX_DESCRIPTION], tuple(tags_of(tags)))


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
