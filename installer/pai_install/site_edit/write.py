"""Values as YAML in one style: words plain where every reader takes them for text, else in double quotes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

Value = str | Sequence[str] | Mapping[str, str]
Item = str | Mapping[str, Value]

_PLAIN = re.compile(r"[A-Za-z0-9_./$][A-Za-z0-9_./$=@+-]*")
# what YAML 1.1 or 1.2 takes for something else than text
_OTHER = re.compile(
    r"~|null|true|false|yes|no|on|off|y|n|[-+.]?[0-9][0-9_.]*(?:e[-+]?[0-9]+)?|0[xob][0-9a-f_]+"
    r"|[0-9]{4}-[0-9]+-[0-9].*|[-+]?\.(?:inf|nan)|[0-9_.]*|=",
    re.IGNORECASE,
)
FLAGS = ("true", "false")


def scalar(value: str) -> str:
    """A text as a scalar, also between brackets."""
    if value in FLAGS or (_PLAIN.fullmatch(value) and not _OTHER.fullmatch(value)):
        return value
    return json.dumps(value, ensure_ascii=False)


def flow(value: Item | Value) -> str:
    """Any value on one line."""
    if isinstance(value, str):
        return scalar(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {flow(one)}" for key, one in value.items()) + "}"
    return "[" + ", ".join(map(scalar, value)) + "]"


def item_lines(item: Item, column: int, gap: str = " ") -> list[str]:
    """An item of a list with its dash in that column (from 0), and `gap` after it."""
    head = f"{' ' * column}-{gap}"
    if isinstance(item, str):
        return [head + scalar(item)]
    rows = [f"{key}: {flow(value)}" for key, value in item.items()]
    return [head + rows[0], *(" " * len(head) + row for row in rows[1:])]


def nested_lines(keys: Sequence[str], item: Item, column: int) -> list[str]:
    """A list of one item below keys, the first of them in that column."""
    heads = [f"{' ' * (column + 2 * depth)}{key}:" for depth, key in enumerate(keys)]
    return [*heads, *item_lines(item, column + 2 * len(keys))]


def nested_flow(keys: Sequence[str], item: Item) -> str:
    """Returns the same on one line, or the list alone without keys."""
    inner = f"[{flow(item)}]"
    for number, key in enumerate(reversed(keys)):
        inner = f"{key}: {inner}" if number == len(keys) - 1 else f"{{{key}: {inner}}}"
    return inner
