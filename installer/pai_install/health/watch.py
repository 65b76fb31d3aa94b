"""Differences between two runs."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import OPEN
from pai_install.health.memory.acknowledgement import cause_of
from pai_install.health.report import HealthReport

Key = tuple[str, str, str]


def open_findings(report: HealthReport) -> dict[Key, Finding]:
    """(machine, device, check) -> finding, of everything that is neither PASS nor SKIP."""
    return {(finding.subject, finding.device, finding.id): finding for finding in report.of(*OPEN)}


def changes(before: dict[Key, Finding], after: dict[Key, Finding]) -> Iterator[str]:
    """One line per finding that is new, has another verdict or cause, or is gone."""
    for key, finding in after.items():
        old = before.get(key)
        if old is None or old.verdict is not finding.verdict or _cause(old) != _cause(finding):
            was = f" (was {old.verdict.value})" if old and old.verdict is not finding.verdict else ""
            value = f": {finding.value}" if finding.value else ""
            yield f"{finding.verdict.value}{was} {finding.where} {finding.id}: {finding.message}{value}"
    for key, finding in before.items():
        if key not in after:
            yield f"gone {finding.where} {finding.id} (was {finding.verdict.value})"


def _cause(finding: Finding) -> str:
    """Returns cause and place, without numbers that change from run to run."""
    return cause_of(finding._replace(message=f"{finding.message} {finding.value}"))
