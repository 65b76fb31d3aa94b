"""Groups of equal findings, which every report shows once. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Action, Verdict


class Occurrences(NamedTuple):
    """Where one thing was seen."""

    value: str
    expected: str
    where: tuple[str, ...]


class FindingGroup(NamedTuple):
    """Findings of one verdict, message and remedy. checks: the ids that say so, most often one."""

    verdict: Verdict
    message: str
    remedy: str
    checks: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def action(self) -> Action:
        """Returns the action for a FAIL, as one word."""
        return self.findings[0].action

    @property
    def places(self) -> tuple[Occurrences, ...]:
        """Each thing that was seen, with everywhere that it was."""
        found: dict[tuple[str, str], dict[str, None]] = {}
        for finding in self.findings:
            found.setdefault((finding.value, finding.expected), {})[finding.where] = None
        return tuple(Occurrences(*seen, tuple(where)) for seen, where in found.items())

    @property
    def source(self) -> str:
        """Returns the origin of the rule."""
        return self.findings[0].source


def groups(findings: Iterable[Finding], verdicts: Iterable[Verdict]) -> Iterator[FindingGroup]:
    """Yields the findings with these verdicts, by verdict and then by appearance.

    FAIL, WARN, and similar verdicts have one group per check. UNKNOWN has one group per reason and subjects over all
    checks, because a missing driver, for example, leaves many checks unanswered.
    """
    kept = list(findings)
    for verdict in verdicts:
        of_verdict = [finding for finding in kept if finding.verdict is verdict]
        yield from _unanswered(of_verdict) if verdict is Verdict.UNKNOWN else _alike(of_verdict)


def _alike(findings: Iterable[Finding]) -> Iterator[FindingGroup]:
    found: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        found.setdefault((finding.id, finding.message, finding.remedy), []).append(finding)
    for (check, message, remedy), alike in found.items():
        yield FindingGroup(alike[0].verdict, message, remedy, (check,), tuple(alike))


def _unanswered(findings: Iterable[Finding]) -> Iterator[FindingGroup]:
    reasons: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        reasons.setdefault((finding.id, finding.message.partition("\n")[0]), []).append(finding)
    found: dict[tuple[str, tuple[str, ...]], dict[str, list[Finding]]] = {}
    for (check, message), alike in reasons.items():
        places = tuple(finding.where for finding in alike)
        found.setdefault((message, places), {})[check] = alike
    for (message, _places), checks in found.items():
        first = next(iter(checks.values()))
        remedy = next((finding.remedy for alike in checks.values() for finding in alike if finding.remedy), "")
        yield FindingGroup(Verdict.UNKNOWN, message, remedy, tuple(checks), tuple(first))
