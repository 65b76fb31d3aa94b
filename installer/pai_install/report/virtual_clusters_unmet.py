"""Guarantees for which machines are missing now: as data, as text, and the schema of the data. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pai_install.json_schema import closed_object
from pai_install.scheduling.usage.health import Unmet

_TEXT: dict[str, Any] = {"type": "string"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}


def unmet_data(unmet: Sequence[Unmet]) -> list[dict[str, Any]]:
    """A row for each SKU, and for each machine of a virtual cluster's own."""
    return [
        {
            "sku": one.sku,
            "virtual_clusters": list(one.clusters),
            "units": one.units,
            "machines": [{"machine": it.machine, "units": it.units, "why": it.why} for it in one.machines],
        }
        for one in unmet
    ]


def unmet_text(unmet: Sequence[Unmet]) -> str:
    """Empty where all guarantees can be met."""
    return "\nguaranteed, and not there now:\n" + "".join(f"  {one}\n" for one in unmet) if unmet else ""


def unmet_schema() -> dict[str, Any]:
    """Of `unmet_data`."""
    lack = closed_object(machine=_TEXT, units={**_COUNT, "description": "that it does not offer"}, why=_TEXT)
    row = closed_object(
        sku=_TEXT,
        virtual_clusters={"type": "array", "items": _TEXT},
        units={**_COUNT, "description": "guaranteed to them, together, and not there"},
        machines={"type": "array", "items": lack},
    )
    return {"type": "array", "items": row, "description": "guarantees that cannot be met now"}
