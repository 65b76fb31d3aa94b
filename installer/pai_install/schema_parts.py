"""Pieces of the JSON Schemas that have no model. `--help` imports them, so this module needs no pydantic."""

from __future__ import annotations

from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def closed_object(**properties: dict[str, Any]) -> dict[str, Any]:
    """An object that has exactly these properties, every one of them."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def published(title: str, version: int, **properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of a report. title: the command that prints it. version: its `schema_version`."""
    return {
        "$schema": DIALECT,
        "title": title,
        **closed_object(schema_version={"const": version}, **properties),
    }
