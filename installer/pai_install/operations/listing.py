"""The operations and their arguments as text and data."""

from __future__ import annotations

from typing import Any

from pai_install.json_schema import closed_object, published
from pai_install.operations import OPERATIONS

OPERATIONS_SCHEMA_VERSION = 1


def operations_data() -> dict[str, Any]:
    """The published form: name, summary and the JSON Schema of the arguments of each."""
    return {
        "schema_version": OPERATIONS_SCHEMA_VERSION,
        "operations": [
            {"name": one.name, "summary": one.summary, "arguments": one.model_json_schema()} for one in OPERATIONS
        ],
    }


def operations_text() -> str:
    """A line for each, and its arguments below."""
    lines = []
    for one in OPERATIONS:
        lines.append(f"{one.name}: {one.summary}")
        lines += [f"    {name}: {field.description}" for name, field in one.model_fields.items()]
    return "\n".join(lines)


def schema() -> dict[str, Any]:
    """The JSON Schema of `operations_data`."""
    text: dict[str, Any] = {"type": "string"}
    one = closed_object(name=text, summary=text, arguments={"type": "object"})
    return published(
        "pai-install operations",
        OPERATIONS_SCHEMA_VERSION,
        operations={"type": "array", "items": one},
    )
