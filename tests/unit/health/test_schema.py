"""The published schema of health reports holds what they say."""

from __future__ import annotations

import jsonschema  # type: ignore[import-untyped]

from pai_install.health.document import HealthDocument, health_document
from pai_install.health.report import HealthReport
from pai_install.json_schema import schema_of

from .machines import gpu_change, healthy


def test_schema_names_what_the_report_holds() -> None:
    schema = schema_of(HealthDocument)
    sick = gpu_change("remapped_rows/remapped_row_failure", "Yes")(healthy())
    document = health_document(HealthReport((sick.report(),), {"gone": "why"}, "s"), everything=True).as_json()
    jsonschema.Draft202012Validator(schema).validate(document)
    finding = schema["$defs"]["HealthFindingEntry"]
    rows = [row for machine in document["machines"] for row in machine["findings"]]
    assert set(finding["properties"]) == {name for row in rows for name in row}
