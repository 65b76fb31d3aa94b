"""What is printed is what the published schemas say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from pai_install.cli.schema import SCHEMAS
from pai_install.monitoring.alertmanager import FiringAlert
from pai_install.report.data import run_report
from pai_install.report.diffs import FileChange
from pai_install.report.plan import plan_document
from pai_install.report.site_status import SiteStatus, last_run_of
from pai_install.report.status import status_report
from pai_install.site.load import load_site
from tests.unit.cli.stub_environment import write_site
from tests.unit.report.outcomes import FINE, TROUBLED


def check(name: str, data: Any) -> None:
    """Fails unless the data, as JSON, is what the schema says."""
    jsonschema.Draft202012Validator(SCHEMAS[name]()).validate(json.loads(json.dumps(data)))


@pytest.mark.parametrize("outcome", [FINE, TROUBLED])
def test_report(outcome: Any) -> None:
    check("report", run_report(outcome).as_json())


def test_plan(kit: Any) -> None:
    check("plan", plan_document(kit.plan()).as_json())
    plan = kit.plan(kit.phase("base", "one", needs=("time",)), unreachable={"two": "gone"})
    check("plan", plan_document(plan, (FileChange("base", "one", "Write", "+x"),)).as_json())


def test_status(kit: Any, tmp_path: Path) -> None:
    site = load_site(write_site(tmp_path / "site")).site
    check("status", status_report(SiteStatus(site)).as_json())
    alert = FiringAlert("MachineDown", "critical", "one", "one is down", "power it on", "", {"node": "one"})
    check("status", status_report(SiteStatus(site, alerts=(alert,))).as_json())
    run = last_run_of("20260301T120000Z", run_report(TROUBLED).as_json())
    assert run.exit_code == 6
    assert run.left == TROUBLED.left
    plan = kit.plan(kit.phase("base", "one"), unreachable={"two": "gone"})
    check("status", status_report(SiteStatus(site, plan, TROUBLED.findings, run, "somebody", "r1")).as_json())


def test_missing_or_further_field_is_noticed() -> None:
    data = run_report(FINE).as_json()
    with pytest.raises(jsonschema.ValidationError):
        check("report", {**data, "more": 1})
    del data["phases"]
    with pytest.raises(jsonschema.ValidationError):
        check("report", data)
