"""What has changed between two runs."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.findings import Verdict
from pai_install.health.model import HealthFinding
from pai_install.health.report import HealthReport

Key = tuple[str, str, str]
_LOUD = (Verdict.FAIL, Verdict.WARN, Verdict.UNKNOWN)


def loud(report: HealthReport) -> dict[Key, HealthFinding]:
    """(machine, device, check) -> finding, of everything that is neither PASS nor SKIP."""
    return {(finding.machine, finding.device, finding.check): finding for finding in report.of(*_LOUD)}


def changes(before: dict[Key, HealthFinding], after: dict[Key, HealthFinding]) -> Iterator[str]:
    """One line per finding that is new, has another verdict, or is gone."""
    for key, finding in after.items():
        old = before.get(key)
        if old is None or old.verdict is not finding.verdict:
            was = f" (was {old.verdict.value})" if old else ""
            value = f": {finding.value}" if finding.value else ""
            yield f"{finding.verdict.value}{was} {finding.subject} {finding.check}: {finding.message}{value}"
    for key, finding in before.items():
        if key not in after:
            yield f"gone {finding.subject} {finding.check} (was {finding.verdict.value})"
