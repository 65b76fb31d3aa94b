"""docs/health.md holds the tables that the code makes. PAI_REGENERATE=1 writes them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from pai_install.health.catalogues import load_catalogue, load_limits
from pai_install.health.explain import checks_markdown, limits_markdown, xids_markdown
from pai_install.health.model import HealthFinding
from pai_install.health.report import HealthReport
from pai_install.health.rules import TEXTS

from .machines import gpu_change, healthy

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "health.md"
MARK = "<!-- made from the code: PAI_REGENERATE=1 pytest tests/unit/health/test_docs.py -->\n"


def tables() -> str:
    return "\n".join(
        [
            MARK + "## Checks\n",
            f"{len(TEXTS)} checks. A finding's own text says more where it matters.\n",
            checks_markdown(),
            "## Numbers\n",
            limits_markdown(load_limits()),
            "## Xids\n",
            "PASS: the application's own fault or plain information, reported but not held against the GPU.\n",
            xids_markdown(load_catalogue()),
        ]
    )


def test_page_is_up_to_date() -> None:
    head = PAGE.read_text().split(MARK)[0]
    if os.environ.get("PAI_REGENERATE"):
        PAGE.write_text(head + tables())
    assert PAGE.read_text() == head + tables()


def test_schema_names_what_the_report_holds() -> None:
    schema: dict[str, Any] = json.loads((ROOT / "docs/reference/health.schema.json").read_text())
    sick = gpu_change("remapped_rows/remapped_row_failure", "Yes")(healthy())
    document = HealthReport((sick.report(),), {"gone": "why"}, "s").as_json(everything=True)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(json.dumps(document)))
    finding = schema["properties"]["machines"]["items"]["properties"]["findings"]["items"]
    assert set(finding["properties"]) == set(HealthFinding._fields)
