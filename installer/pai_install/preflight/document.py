"""A preflight as a result: preflight.json, and `preflight --format json`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from pai_install.checks.finding import worst
from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode
from pai_install.json_schema import Report, Seconds
from pai_install.preflight.model import BOX
from pai_install.preflight.report import PreflightReport
from pai_install.report.findings import FindingEntry, VerdictCounts, finding_entries, verdict_counts

_ExitStatus = Annotated[int, WithJsonSchema({"enum": [int(ExitCode.OK), int(ExitCode.PREFLIGHT_FAILED)]})]


class PreflightDocument(Report, title="pai-install preflight"):
    """A preflight, with every finding, also PASS and SKIP."""

    schema_version: Literal[1] = 1
    ok: bool
    exit_code: _ExitStatus
    site: str
    duration_s: Seconds
    forced: tuple[str, ...] = Field(description="Checks that the user let pass.")
    verdicts: VerdictCounts
    machines: Mapping[str, Verdict] = Field(description="The gravest verdict of each.")
    findings: tuple[FindingEntry, ...]


def preflight_document(report: PreflightReport) -> PreflightDocument:
    """Returns a preflight as a result."""
    return PreflightDocument(
        ok=report.ok,
        exit_code=report.exit_code,
        site=report.site,
        duration_s=round(report.duration_s, 3),
        forced=report.forced,
        verdicts=verdict_counts(report.findings),
        machines={name: worst(found) for name, found in report.subjects.items() if name != BOX},
        findings=finding_entries(report.findings),
    )
