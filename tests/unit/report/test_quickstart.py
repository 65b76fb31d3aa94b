"""The result of a quickstart, and the next commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.report.quickstart import FirstJob, FirstSignIn, QuickstartReport, quickstart_text
from pai_install.report.site_status import ConsoleAccess
from tests.unit.report.test_schemas import check

CONSOLE = "https://10.0.0.1/"
BARE = QuickstartReport(ok=True, exit_code=0, duration_s=90, machines=3, console=None, job=None, sign_in=None)
WHOLE = BARE.model_copy(
    update={
        "console": ConsoleAccess((CONSOLE,), "AA:BB"),
        "job": FirstJob(name="first-job", user="root", group="team", url=f"{CONSOLE}jobs/root~first-job"),
        "sign_in": FirstSignIn(user="root", url=f"{CONSOLE}password/SECRET", until="2026-11-27T14:05:09Z"),
    }
)


@pytest.mark.parametrize("program", ["./pai-install", "pai-install"])
def test_the_next_commands_are_what_a_user_of_this_installation_types(program: str) -> None:
    lines = quickstart_text(BARE, Path("lab"), "root", program=program).splitlines()
    assert {line.split()[0] for line in lines[2:]} == {program}


@pytest.mark.parametrize(
    "report", [BARE, WHOLE, WHOLE.model_copy(update={"sign_in": None})], ids=["bare", "whole", "without passwords"]
)
def test_it_says_where_the_job_is_and_how_to_sign_in(report: QuickstartReport, snapshot: SnapshotAssertion) -> None:
    check("quickstart", report.as_json())
    assert quickstart_text(report, Path("lab"), "root", program="pai-install") == snapshot
    assert "SECRET" not in repr(report)
