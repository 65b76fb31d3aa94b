"""Defensive parsing of Kubernetes JSON: a missing value is None, never a good value."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pai_install.agents.common.values import child, parse_object, rows, text

__all__ = ["child", "parse_object", "rows", "text"]

JsonObject = Mapping[str, Any]

_QUANTITY = re.compile(r"^([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)(?:(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E)|[eE]([+-]?\d+))?$")
_FACTORS = {
    **{word: 2.0 ** (10 * power) for power, word in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
    **{word: 10.0 ** (3 * power) for power, word in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of an object. status: "True", "False", "Unknown", or "" where the API says none."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""


def number(value: object) -> int | None:
    """Returns an integer, or None for any other value."""
    # Python's booleans are integers: `true` would count as 1.
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def words(value: object) -> dict[str, str]:
    """A mapping of strings, such as labels."""
    return {str(key): str(entry) for key, entry in value.items()} if isinstance(value, Mapping) else {}


def conditions(value: object) -> tuple[Condition, ...]:
    """The conditions in a status."""
    return tuple(
        Condition(text(row.get("type")), text(row.get("status")), text(row.get("reason")), text(row.get("message")))
        for row in rows(value)
    )


def holding(found: Iterable[Condition], kind: str) -> Condition | None:
    """The condition of that type, if it holds."""
    return next((one for one in found if one.type == kind and one.status == "True"), None)


def state_of(found: Sequence[Condition], kind: str) -> bool | None:
    """Returns whether the condition is "True", or None if it is missing. "Unknown" is False."""
    return next((entry.status == "True" for entry in found if entry.type == kind), None)


def quantity(value: object) -> float | None:
    """Returns a Kubernetes quantity in its base unit (bytes, cores, devices), or None if it is invalid."""
    match = _QUANTITY.match(str(value))
    if not match:
        return None
    factor = float(f"1e{match[3]}") if match[3] else _FACTORS.get(match[2] or "", 1.0)
    found = float(match[1]) * factor
    # An exponent may exceed what a float holds. Infinity would be more than any machine has.
    return found if math.isfinite(found) else None


def quantities(value: object) -> dict[str, float]:
    """Returns resource -> amount. Invalid quantities are omitted."""
    amounts = {str(name): quantity(amount) for name, amount in child(value).items()}
    return {name: amount for name, amount in amounts.items() if amount is not None}
