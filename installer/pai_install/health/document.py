"""Results of `health` and its subcommands, as --format json prints them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from pai_install.checks.verdict import CALM, Action, Verdict
from pai_install.errors import ExitCode
from pai_install.health.judge.evaluate import MachineReport
from pai_install.health.memory.acknowledgement import Acknowledgement
from pai_install.health.memory.snapshot import Snapshot
from pai_install.health.report import HealthReport
from pai_install.json_schema import OptionalText, Report, ReportObject
from pai_install.report.findings import VerdictCounts, verdict_counts

_ExitStatus = Annotated[int, WithJsonSchema({"enum": [int(ExitCode.OK), int(ExitCode.VERIFICATION_FAILED)]})]


def _iso(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


_Time = Annotated[str, BeforeValidator(_iso)]


class HealthFindingEntry(ReportObject):
    """A finding, with the keys that it had in health before all commands had one form."""

    check: str = Field(validation_alias="id")
    machine: str = Field(validation_alias="subject")
    device: OptionalText = Field(description="Bus id, port, or disk. Absent for the machine itself.")
    verdict: Verdict
    message: str
    value: OptionalText
    expected: OptionalText
    threshold_source: OptionalText = Field(validation_alias="source")
    evidence: OptionalText = Field(description="Fields, commands, and files that were read.")
    remedy: OptionalText
    action: Action


class HealthMachineEntry(ReportObject):
    """A machine that returned evidence."""

    name: str
    sku: str
    collected_at: float = Field(description="Seconds since 1970.")
    verdict: Verdict
    action: Action
    verdicts: VerdictCounts
    findings: tuple[HealthFindingEntry, ...] = Field(description="PASS and SKIP only with --all.")


class AcknowledgementEntry(ReportObject):
    """A finding that a person has acknowledged."""

    machine: str
    check: str
    device: str
    said: str
    who: str
    why: str
    at: _Time
    until: _Time


class HealthDocument(Report, title="pai-install health"):
    """The health of machines."""

    site: str
    exit_code: _ExitStatus
    verdicts: VerdictCounts
    unreachable: Mapping[str, str] = Field(description="Machine to why it returned no evidence. Counts as a FAIL.")
    machines: tuple[HealthMachineEntry, ...]
    acknowledged: tuple[AcknowledgementEntry, ...] = Field(
        description="Acknowledged findings. They are shown as WARN, and no exit code counts them."
    )


class AcknowledgementsReport(Report, title="pai-install health acknowledge"):
    """The acknowledged findings."""

    acknowledged: tuple[AcknowledgementEntry, ...]


class HistoryReport(Report, title="pai-install health history"):
    """Earlier results of a machine."""

    machine: str
    runs: tuple[Snapshot, ...]


def health_document(report: HealthReport, *, everything: bool = False, strict: bool = False) -> HealthDocument:
    """Returns the health of machines as a result. PASS and SKIP findings are only counted unless `everything`."""
    return HealthDocument(
        site=report.site,
        exit_code=report.exit_code(strict=strict),
        verdicts=verdict_counts(report.findings),
        unreachable=report.missed,
        machines=tuple(_machine(machine, everything=everything) for machine in report.machines),
        acknowledged=acknowledgement_entries(report.acknowledged.values()),
    )


def acknowledgement_entries(items: Iterable[Acknowledgement]) -> tuple[AcknowledgementEntry, ...]:
    """The acknowledgements as results."""
    return tuple(map(AcknowledgementEntry.model_validate, items))


def _machine(report: MachineReport, *, everything: bool) -> HealthMachineEntry:
    shown = (finding for finding in report.findings if everything or finding.verdict not in CALM)
    return HealthMachineEntry(
        name=report.name,
        sku=report.sku,
        collected_at=report.collected_at,
        verdict=report.verdict,
        action=report.action,
        verdicts=verdict_counts(report.findings),
        findings=tuple(map(HealthFindingEntry.model_validate, shown)),
    )
