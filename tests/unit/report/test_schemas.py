"""What is printed is what the published schemas say; the files in docs/reference are those of the code."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from pai_install.cli.schema import SCHEMAS
from pai_install.monitoring.alertmanager import FiringAlert
from pai_install.report.data import run_report
from pai_install.report.diffs import FileChange
from pai_install.report.planned import plan_data
from pai_install.report.standing import Standing, last_run_of, status_data
from pai_install.site.load import load_site
from tests.unit.cli.stub_environment import write_site
from tests.unit.report.outcomes import FINE, TROUBLED

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"


def check(name: str, data: Any) -> None:
    """Fails unless the data, as JSON, is what the schema says."""
    jsonschema.Draft202012Validator(SCHEMAS[name]()).validate(json.loads(json.dumps(data)))


@pytest.mark.parametrize("outcome", [FINE, TROUBLED])
def test_report(outcome: Any) -> None:
    check("report", run_report(outcome).as_json())


def test_plan(kit: Any) -> None:
    check("plan", plan_data(kit.plan()))
    plan = kit.plan(kit.phase("base", "one", needs=("time",)), unreachable={"two": "gone"})
    check("plan", plan_data(plan, (FileChange("base", "one", "Write", "+x"),)))


def test_status(kit: Any, tmp_path: Path) -> None:
    site = load_site(write_site(tmp_path / "site")).site
    check("status", status_data(Standing(site)))
    alert = FiringAlert("MachineDown", "critical", "one", "one is down", "power it on", "", {"node": "one"})
    check("status", status_data(Standing(site, alerts=(alert,))))
    run = last_run_of("20260301T120000Z", run_report(TROUBLED).as_json())
    assert run.exit_code == 6
    assert run.left == TROUBLED.left
    plan = kit.plan(kit.phase("base", "one"), unreachable={"two": "gone"})
    check("status", status_data(Standing(site, plan, TROUBLED.findings, run, "somebody", "r1")))


def test_missing_or_further_field_is_noticed() -> None:
    data = run_report(FINE).as_json()
    with pytest.raises(jsonschema.ValidationError):
        check("report", {**data, "more": 1})
    del data["phases"]
    with pytest.raises(jsonschema.ValidationError):
        check("report", data)


@pytest.mark.parametrize("name", ["report", "runs", "plan", "status"])
def test_published_file_is_the_codes(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name]())
    path = REFERENCE / f"{name}.schema.json"
    text = json.dumps(SCHEMAS[name](), indent=2) + "\n"
    if "PAI_RECORD" in os.environ:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()
