"""Conditions that objects are waited for, in the form of `kubectl wait --for`. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pai_install.kube.objects import JsonObject, child, rows, text

GONE = "delete"
_PATH = re.compile(r"jsonpath=\{((?:\.[A-Za-z0-9_-]+)+)\}(?:=(.*))?")


def met(item: JsonObject | None, condition: str) -> bool:
    """Whether an object is in a condition. item: None for an object that does not exist.

    Raises ValueError for a form that is not supported.
    """
    if condition == GONE:
        return item is None
    if name := condition.removeprefix("condition=") * condition.startswith("condition="):
        kind, _, value = name.partition("=")
        return item is not None and _state(item, kind) == (value or "True").lower()
    if match := _PATH.fullmatch(condition):
        return item is not None and _at(item, match[1].split(".")[1:], match[2])
    raise ValueError(f"no condition to wait for: {condition}")


def _state(item: JsonObject, kind: str) -> str:
    """The status of a condition. One about an earlier generation counts as none."""
    generation = child(item, "metadata").get("generation")
    for row in rows(child(item, "status").get("conditions")):
        if text(row.get("type")).lower() == kind.lower():
            seen = row.get("observedGeneration")
            late = isinstance(seen, int) and isinstance(generation, int) and seen < generation
            return "" if late else text(row.get("status")).lower()
    return ""


def _at(item: JsonObject, path: list[str], wanted: str | None) -> bool:
    value: object = item
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return False
        value = value[name]
    if wanted is None:
        return True
    return str(value).lower() == wanted.lower() if isinstance(value, bool) else str(value) == wanted
