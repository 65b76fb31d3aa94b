"""An item of a list somewhere in a YAML text: put in, taken out. Every edit is read back before it counts."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any, NoReturn

from pai_install.documents.document import Document
from pai_install.documents.parse import parse_document
from pai_install.documents.problem import YamlPath
from pai_install.site_edit.lines import line_end, line_start, opens_line, with_lines, without_lines
from pai_install.site_edit.spans import EditError, Span, line_of, read_spans
from pai_install.site_edit.write import Item, flow, item_lines, nested_flow, nested_lines

_TRAIL = re.compile(r"[ \t]*,")


def with_item(text: str, path: YamlPath, item: Item) -> str:
    """Returns the text with an item appended to the list at `path`. Missing parents are created.

    Raises EditError if this is impossible or would change other values.
    """
    if not text.strip():
        return "".join(f"{line}\n" for line in nested_lines(_keys(path), item, 0))
    root = _root(text)
    made = _Addition(text, item).along(root, path)
    wanted = _data(text)
    _list_at(wanted, path).append(_plain(item))
    return _proven(text, made, _data(made) == wanted, root.start)


def without_item(text: str, path: YamlPath, number: int) -> str:
    """The text without an item of the list at `path`, and without the keys that would then hold nothing, where each
    of them has its own lines. Raises EditError where that cannot be done, or would change anything else.
    """
    root = _root(text)
    chain = _chain(text, root, path)
    made = _removed(text, chain, path, number)
    # Both texts are parsed again and compared. An edit of text that also changes something else is refused.
    wanted, got = _data(text), _data(made)
    del _list_at(wanted, path)[number]
    place = chain[-1].items[number].start
    return _proven(text, made, _pruned(got, path) == _pruned(wanted, path), place)


def _proven(text: str, made: str, same: bool, place: int) -> str:  # noqa: FBT001 - the outcome of one comparison
    if not same:
        message = "is written in a way that no command edits without changing something else (*alias, << or a tag?)"
        raise EditError(message, line_of(text, place))
    return made


def _root(text: str) -> Span:
    root = read_spans(text)
    if root is None or root.kind != "mapping":
        raise EditError("has no mapping at its top", 1)
    return root


def _keys(path: YamlPath) -> list[str]:
    return [str(key) for key in path]


class _Addition:
    def __init__(self, text: str, item: Item) -> None:
        self._text = text
        self._item = item

    def along(self, node: Span, path: YamlPath) -> str:
        """The text with the item below a value."""
        for depth, part in enumerate(path):
            if isinstance(part, int):
                node = node.items[part]
                continue
            number = node.number(part) if node.kind == "mapping" else self._refuse(node)
            rest = _keys(path[depth:])
            if number is None:
                return self._new_key(node, rest)
            value = node.values[number]
            if value.kind == "scalar":
                return self._instead_of_nothing(node, number, rest)
            node = value
        return self._append(node)

    def _new_key(self, node: Span, keys: list[str]) -> str:
        text = self._text
        if not node.flow:
            column = node.keys[0].start - line_start(text, node.keys[0].start)
            return with_lines(text, node.end, nested_lines(keys, self._item, column))
        return self._between_brackets(node, node.values, nested_flow(keys, self._item))

    def _instead_of_nothing(self, node: Span, number: int, keys: list[str]) -> str:
        """Below a key without value."""
        text, value, colon = self._text, node.values[number], node.colons[number]
        if value.absent and not node.flow:
            key = node.keys[number]
            column = key.start - line_start(text, key.start)
            return with_lines(text, colon + 1, nested_lines(keys, self._item, column)[1:])
        if not value.absent and value.value not in ("~", "null", "Null", "NULL"):
            self._refuse(value)
        inner = nested_flow(keys[1:], self._item)
        whole = f"{{{inner}}}" if keys[1:] else inner
        lead = "" if not value.absent else " " if colon >= 0 else ": "
        return text[: value.start] + lead + whole + text[value.end :]

    def _append(self, node: Span) -> str:
        text = self._text
        if node.kind != "list":
            self._refuse(node)
        if node.flow:
            return self._between_brackets(node, node.items, flow(self._item))
        dash, last = node.dashes[-1], node.items[-1]
        # The gap after the dash is taken from the list itself, so that the new item looks like its neighbours.
        gap = text[dash + 1 : last.start]
        gap = gap if gap and not gap.strip(" ") else " "
        return with_lines(text, node.end, item_lines(self._item, dash - line_start(text, dash), gap))

    def _between_brackets(self, node: Span, inner: tuple[Span, ...], new: str) -> str:
        place = inner[-1].end if inner else node.end - 1
        if not inner and not self._text[node.start + 1 : place].strip():
            place = node.start + 1
        return self._text[:place] + (", " if inner else "") + new + self._text[place:]

    def _refuse(self, node: Span) -> NoReturn:
        raise EditError("is written in a way that no command edits", line_of(self._text, node.start))


def _chain(text: str, root: Span, path: YamlPath) -> list[Span]:
    """The values on the way to `path`, from the root to the list."""
    chain = [root]
    for part in path:
        node = chain[-1]
        number = part if isinstance(part, int) else node.number(part)
        inner = node.items if isinstance(part, int) else node.values
        if number is None or number >= len(inner):
            raise EditError("is written in a way that no command edits", line_of(text, node.start))
        chain.append(inner[number])
    if chain[-1].kind != "list":
        raise EditError("is written in a way that no command edits", line_of(text, chain[-1].start))
    return chain


def _removed(text: str, chain: list[Span], path: YamlPath, number: int) -> str:
    found = chain[-1]
    if found.flow:
        return _out_of_brackets(text, found, number)
    item, dash = found.items[number], found.dashes[number]
    if not opens_line(text, dash):
        raise EditError("is written in a way that no command edits", line_of(text, dash))
    if len(found.items) > 1:
        return without_lines(text, dash, item.end)
    # Without its last item the list would mean null. So its key goes as well, or the list becomes [].
    key = _removable(text, chain, path)
    if key is not None:
        return without_lines(text, key.start, found.end)
    holder = chain[-2]
    colon = holder.colons[holder.number(str(path[-1])) or 0]
    rest = without_lines(text, dash, item.end)
    return f"{rest[: colon + 1]} []{rest[colon + 1 :]}"


def _removable(text: str, chain: list[Span], path: YamlPath) -> Span | None:
    """Returns the outermost key that would become empty, if it and its content have separate, uncommented lines."""
    for depth in range(len(path) - 1, -1, -1):
        holder, part = chain[depth], path[depth]
        if isinstance(part, int) or holder.flow:
            return None
        key = holder.keys[holder.number(part) or 0]
        if not opens_line(text, key.start) or text[key.start] in "&!?":
            return None
        if len(holder.keys) > 1:
            alone = "#" not in text[key.start : line_end(text, chain[-1].end)]
            return key if alone else None
    return None


def _out_of_brackets(text: str, found: Span, number: int) -> str:
    item = found.items[number]
    start, end = item.start, item.end
    if number > 0:
        start = found.items[number - 1].end
    elif len(found.items) > 1:
        end = found.items[1].start
    elif comma := _TRAIL.match(text, end):
        end = comma.end()
    if not set("#\r\n") & set(text[start : item.start] + text[item.end : end]):
        return text[:start] + text[end:]
    # A comment or a line end beside the item belongs to its neighbours, so only the item and its comma go.
    start, end = item.start, item.end
    comma = _TRAIL.match(text, end)
    end = comma.end() if comma else end
    left = text[line_start(text, start) : start] + text[end : line_end(text, end)]
    return text[:start] + text[end:] if left.strip() else without_lines(text, start, end)


def _data(text: str) -> Any:  # noqa: ANN401 - plain containers
    document = Document("")
    parse_document(text, document)
    return _copied(document.root) if not document.problems else None


def _copied(value: Any) -> Any:  # noqa: ANN401 - plain containers
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_copied(one) for one in value]
    # a block of text that ends a file without a last line end gets one when lines come after it
    return None if value is None else str(value).rstrip("\n")


def _plain(item: Item) -> Any:  # noqa: ANN401 - plain containers
    return item if isinstance(item, str) else _copied(deepcopy(dict(item)))


def _list_at(data: Any, path: YamlPath) -> list[Any]:  # noqa: ANN401 - plain containers
    """The list at `path`, made where there is none."""
    here = data
    for number, part in enumerate(path):
        if not isinstance(part, int) and here.get(part) is None:
            here[part] = [] if number == len(path) - 1 else {}
        here = here[part]
    found: list[Any] = here
    return found


def _pruned(data: Any, path: YamlPath) -> Any:  # noqa: ANN401 - plain containers
    """Returns the data without parents of `path` that are empty."""
    if not path or not isinstance(data, dict | list):
        return data or None
    part, rest = path[0], path[1:]
    if isinstance(data, list):
        return [_pruned(one, rest) if number == part else one for number, one in enumerate(data)]
    kept = {**data, part: _pruned(data.get(str(part)), rest)}
    return {key: one for key, one in kept.items() if key != part or one} or None
