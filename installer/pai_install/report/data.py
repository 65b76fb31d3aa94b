"""The result of a run as a report: report.json, and --format json of verbs that act."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import AliasPath, Field

from pai_install.json_schema import Count, ExitStatus, Report, ReportObject, Seconds
from pai_install.report.findings import FindingEntry
from pai_install.report.model import Counts, Failure, HostStatus, Outcome, TaskRecord


class HostReport(ReportObject):
    """The result of a phase on one of its machines, with the numbers of its tasks."""

    status: HostStatus
    ok: Count = Field(validation_alias=AliasPath("counts", "ok"))
    changed: Count = Field(validation_alias=AliasPath("counts", "changed"))
    failed: Count = Field(validation_alias=AliasPath("counts", "failed"))
    unreachable: Count = Field(validation_alias=AliasPath("counts", "unreachable"))
    skipped: Count = Field(validation_alias=AliasPath("counts", "skipped"))
    tasks: Count = Field(validation_alias=AliasPath("counts", "tasks"))
    changes: tuple[TaskRecord, ...]
    failure: Failure | None
    why: str = Field(description="Why the machine was left out.")


class PhaseReport(ReportObject):
    """The result of a phase."""

    name: str
    title: str
    duration_s: Seconds
    hosts: Mapping[str, HostReport]
    failure: Failure | None = Field(description="Failure of Ansible itself.")
    undo: str = Field(description="Command that reverts the changes. Empty: none.")


class RunReport(Report, title="pai-install report"):
    """The result of a run. hosts: sums of all phases."""

    schema_version: Literal[1] = 1
    ok: bool
    exit_code: ExitStatus
    duration_s: Seconds
    hosts: Mapping[str, Counts] = Field(validation_alias="counts")
    phases: tuple[PhaseReport, ...]
    findings: tuple[FindingEntry, ...]


class RunsReport(Report, title="pai-install runs"):
    """The results of a verb that makes several runs."""

    exit_code: ExitStatus
    runs: tuple[RunReport, ...]


def run_report(outcome: Outcome) -> RunReport:
    """The report of a run."""
    return RunReport.model_validate(outcome)
