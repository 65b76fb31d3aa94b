"""The JSON Schema of `preflight --format json`."""

from __future__ import annotations

from typing import Any

from pai_install.checks.finding import finding_schema
from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode
from pai_install.preflight.report import SCHEMA_VERSION
from pai_install.schema_parts import closed_object, published

_Schema = dict[str, Any]
_TEXT: _Schema = {"type": "string"}
_COUNT: _Schema = {"type": "integer", "minimum": 0}


def schema() -> _Schema:
    """Returns the schema, equal to docs/reference/preflight.schema.json."""
    verdict: _Schema = {"enum": [verdict.value for verdict in Verdict]}
    counts = {verdict.value: _COUNT for verdict in Verdict}
    return published(
        "pai-install preflight",
        SCHEMA_VERSION,
        ok={"type": "boolean"},
        exit_code={"enum": [int(ExitCode.OK), int(ExitCode.PREFLIGHT_FAILED)]},
        site=_TEXT,
        duration_s={"type": "number", "minimum": 0, "description": "seconds"},
        forced={"type": "array", "items": _TEXT, "description": "checks that the user let pass"},
        verdicts=closed_object(**counts),
        machines={"type": "object", "additionalProperties": verdict, "description": "the gravest verdict of each"},
        findings={"type": "array", "items": finding_schema()},
    )
