"""The published schema of health reports holds what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from pai_install.health.report import HealthReport

from .machines import gpu_change, healthy

ROOT = Path(__file__).parents[3]


def test_schema_names_what_the_report_holds() -> None:
    schema: dict[str, Any] = json.loads((ROOT / "docs/reference/health.schema.json").read_text())
    sick = gpu_change("remapped_rows/remapped_row_failure", "Yes")(healthy())
    document = HealthReport((sick.report(),), {"gone": "why"}, "s").as_json(everything=True)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(json.dumps(document)))
    finding = schema["properties"]["machines"]["items"]["properties"]["findings"]["items"]
    rows = [row for machine in document["machines"] for row in machine["findings"]]
    assert set(finding["properties"]) == {name for row in rows for name in row}
