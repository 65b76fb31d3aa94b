"""Findings as plain text for a terminal: the gravest first, alike ones once; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from pai_install.checks.finding import Finding, counts, worst
from pai_install.checks.verdict import OPEN, Action, Verdict
from pai_install.system.words import shortened

_SHOWN = 5


def finding_lines(findings: Collection[Finding], verdicts: Iterable[Verdict] = OPEN) -> Iterator[str]:
    """Every finding with one of the verdicts, in their order; each group begins with an empty line.

    Findings of one check that say the same are told once, with the first subjects; UNKNOWN ones of one reason and
    subject also over checks, as a missing driver leaves much unanswered.
    """
    for verdict in verdicts:
        found = [finding for finding in findings if finding.verdict is verdict]
        yield from _unanswered(found) if verdict is Verdict.UNKNOWN else _told(found)


def _told(findings: Iterable[Finding]) -> Iterator[str]:
    alike: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.id, finding.message, finding.remedy), []).append(finding)
    for group in alike.values():
        yield from _group(group)


def _group(group: list[Finding]) -> Iterator[str]:
    first = group[0]
    yield ""
    yield f"{first.verdict.value} {first.message} [{first.id}]"
    for finding in group[:_SHOWN]:
        seen = f": {finding.value}" if finding.value else ""
        wanted = f" (expected: {finding.expected})" if finding.expected else ""
        yield f"  {finding.where}{seen}{wanted}"
    if len(group) > _SHOWN:
        yield f"  and {len(group) - _SHOWN} more"
    if first.remedy:
        action = f" [{first.action.value}]" if first.action not in (Action.NONE, Action.CONFIG) else ""
        yield f"  what to do: {first.remedy}{action}"


def unanswered(findings: Iterable[Finding]) -> dict[tuple[str, tuple[str, ...]], dict[str, Finding]]:
    """(Reason, where it is so) -> check -> its first finding; the reason is the message's first line."""
    reasons: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        reasons.setdefault((finding.id, finding.message.partition("\n")[0]), []).append(finding)
    alike: dict[tuple[str, tuple[str, ...]], dict[str, Finding]] = {}
    for (check, message), group in reasons.items():
        places = tuple(finding.where for finding in group)
        alike.setdefault((message, places), {})[check] = group[0]
    return alike


def _unanswered(findings: Iterable[Finding]) -> Iterator[str]:
    for number, ((message, places), checks) in enumerate(unanswered(findings).items()):
        if number == 0:
            yield ""
        yield f"UNKNOWN {message} [{shortened(checks, 3)}]: {shortened(places, 2)}"
        if remedy := next((finding.remedy for finding in checks.values() if finding.remedy), ""):
            yield f"  what to do: {remedy}"


def subject_lines(subjects: Mapping[str, Collection[Finding]]) -> Iterator[str]:
    """One line per subject: its gravest verdict, and how many findings of each."""
    width = max(map(len, subjects), default=0)
    for name, findings in subjects.items():
        told = ", ".join(f"{number} {verdict}" for verdict, number in counts(findings).items() if number)
        yield f"{name:<{width}}  {worst(findings).value:<7}  {told}"


def by_subject(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Subject -> its findings, in order of appearance."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.subject, []).append(finding)
    return found
