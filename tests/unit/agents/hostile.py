"""Hostile objects: any value of an object may have any type, size, and depth. A seed gives the same objects again."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

Object = dict[str, Any]

DEEP = "[" * 30_000
_STRINGS = (
    *("", "x" * 3000, "\x1b[2J", "\u202e", "\ud800", "\0", "null", "{", DEEP, DEEP + "]" * 30_000),
    *('{"a":' * 50_000, '{"says": ' + "[" * 5000 + "]" * 5000 + "}", '{"version": 1, "at": 1e999}', "9" * 5000),
    *("2026-01-01T00:00:00Z", "9999-99-99T99:99:99Z", "-1", "1e309", "Running", "Failed", "True", "NaN", "../../x"),
)
_SCALARS = (None, True, False, -1, 0, 1, 10**18, 10**400, 1.5, float("inf"), float("nan"), *_STRINGS)


def hostile(seeds: list[Object], count: int, seed: int = 0) -> Iterator[Object]:
    """Objects that differ from a seed in one to four places."""
    chance = random.Random(seed)  # noqa: S311
    for number in range(count):
        item = copy.deepcopy(seeds[number % len(seeds)])
        for _ in range(chance.randint(1, 4)):
            _damage(item, chance)
        yield item


def _damage(item: Any, chance: random.Random) -> None:
    """Replaces one value somewhere below, or adds one."""
    place = item
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = chance.choice(keys)
        below = place[key]
        if isinstance(below, dict | list) and below and chance.random() < 0.85:
            place = below
            continue
        if isinstance(below, str) and below.startswith("{") and below.endswith("}") and len(below) < 1000:
            # JSON in an annotation or a condition
            inner = json.loads(below)
            _damage(inner, chance)
            place[key] = json.dumps(inner)
            return
        place[key] = _value(chance)
        return


def _value(chance: random.Random) -> Any:
    kind = chance.randrange(8)
    if kind == 0:
        return nested(chance.choice((40, 60, 200)))
    if kind == 1:
        return [_value(chance) for _ in range(chance.randint(0, 3))]
    if kind == 2:
        return {str(chance.choice(_SCALARS))[:50]: chance.choice(_SCALARS) for _ in range(3)}
    if kind == 3:
        return [{}] * 50
    return chance.choice(_SCALARS)


def nested(depth: int) -> Any:
    value: Any = 1
    for number in range(depth):
        value = [value] if number % 2 else {"a": value}
    return value


# stands for a value that Python's own encoder cannot write
VERY_DEEP = "@very-deep@"


def encoded(item: object) -> bytes:
    """As JSON; NaN and infinity included, which Python's encoder writes."""
    return json.dumps(item).replace(json.dumps(VERY_DEEP), "[" * 3000 + "]" * 3000).encode()
