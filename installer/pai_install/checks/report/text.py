"""Findings as plain text for a terminal: worst first, equal ones once. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from pai_install.checks.finding import Finding, counts, worst
from pai_install.checks.report.groups import FindingGroup, groups
from pai_install.checks.verdict import OPEN, Action, Verdict
from pai_install.system.words import shortened

_SHOWN = 5


def finding_lines(findings: Iterable[Finding], verdicts: Iterable[Verdict] = OPEN) -> Iterator[str]:
    """Yields the findings with these verdicts, in their order. Each group begins with an empty line."""
    for group in groups(findings, verdicts):
        yield ""
        lines = _unanswered(group) if group.verdict is Verdict.UNKNOWN else _details(group)
        # what was seen may have lines of its own, which must not look like ours
        yield from (line.replace("\n", " ") for line in lines)
        if group.remedy:
            action = f" [{group.action.value}]" if group.action not in (Action.NONE, Action.CONFIG) else ""
            yield f"  what to do: {group.remedy}{action}"


def _details(group: FindingGroup) -> Iterator[str]:
    yield f"{group.verdict.value} {group.message} [{group.checks[0]}]"
    for finding in group.findings[:_SHOWN]:
        seen = f": {finding.value}" if finding.value else ""
        wanted = f" (expected: {finding.expected})" if finding.expected else ""
        yield f"  {finding.where}{seen}{wanted}"
    if len(group.findings) > _SHOWN:
        yield f"  and {len(group.findings) - _SHOWN} more"


def _unanswered(group: FindingGroup) -> Iterator[str]:
    places = shortened([finding.where for finding in group.findings], 2)
    yield f"UNKNOWN {group.message} [{shortened(group.checks, 3)}]: {places}"


def subject_lines(subjects: Mapping[str, Collection[Finding]]) -> Iterator[str]:
    """One line per subject: its gravest verdict, and how many findings of each."""
    width = max(map(len, subjects), default=0)
    for name, findings in subjects.items():
        summary = ", ".join(f"{number} {verdict}" for verdict, number in counts(findings).items() if number)
        yield f"{name:<{width}}  {worst(findings).value:<7}  {summary}"


def by_subject(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Subject -> its findings, in order of appearance."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.subject, []).append(finding)
    return found
