"""Pieces of the JSON Schemas that are published."""

from __future__ import annotations

from typing import Any


def closed_object(**properties: dict[str, Any]) -> dict[str, Any]:
    """An object that has exactly these properties, every one of them."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
