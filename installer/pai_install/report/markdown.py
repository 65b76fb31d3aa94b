"""The report as Markdown, for a ticket or a chat."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pai_install.checks.finding import Finding
from pai_install.report.model import Failure, Outcome
from pai_install.report.words import headline, host_word, phase_line
from pai_install.system.plain import one_line

_MARKS = re.compile(r"[\\`*_\[\]()!]")


def markdown(outcome: Outcome, *, title: str) -> str:
    """Returns the whole report. `title` contains the site and the time of the run."""
    return "\n".join(_lines(outcome, title)) + "\n"


def _lines(outcome: Outcome, title: str) -> Iterator[str]:
    yield from (f"# {_plain(title)}", "", f"**{_plain(headline(outcome))}** (exit code {int(outcome.exit_code)})", "")
    yield from _machines(outcome)
    yield from _phases(outcome)
    if outcome.failures:
        yield from ("## Failures", "")
        for failure in outcome.failures:
            yield from _failure(failure)
    if outcome.findings:
        yield from _findings(outcome.findings)
    if outcome.left:
        yield from ("## Still to do", "")
        yield from (f"- {_cell(host)}: {_plain(', '.join(titles))}" for host, titles in outcome.left.items())
        yield ""
    if outcome.undo:
        yield from ("## Undo", "", *(f"- `{command}`" for command in outcome.undo), "")


def _machines(outcome: Outcome) -> Iterator[str]:
    yield from (
        "## Machines",
        "",
        "| machine | result | tasks | changed | failed | skipped |",
        "|---|---|--:|--:|--:|--:|",
    )
    for host, counts in outcome.counts.items():
        numbers = (counts.tasks, counts.changed, counts.failed, counts.skipped)
        yield f"| {_cell(host)} | {host_word(outcome, host).value} | {' | '.join(map(str, numbers))} |"
    yield ""


def _phases(outcome: Outcome) -> Iterator[str]:
    yield from ("## Phases", "", "| phase | result |", "|---|---|")
    for phase in outcome.phases:
        yield f"| {_cell(phase.title)} | {_cell(phase_line(phase))} |"
    yield ""


def _failure(failure: Failure) -> Iterator[str]:
    yield from (f"### {_plain(failure.host or 'Ansible')}: {_plain(failure.task or 'login')}", "")
    if failure.task_path:
        yield f"- where: `{failure.task_path}`"
    for name, text in (
        ("message", failure.message),
        ("likely cause", failure.cause),
        ("what to do", failure.remedy),
    ):
        if text:
            yield f"- {name}: {_plain(text)}"
    if failure.evidence:
        # A fence must be longer than any row of backquotes in the text, or the text would end it.
        fence = "`" * max(3, _longest_fence(failure.evidence) + 1)
        yield from ("", fence, failure.evidence, fence)
    yield ""


def _findings(findings: tuple[Finding, ...]) -> Iterator[str]:
    yield from ("## Checks", "", "| verdict | subject | check | message | what to do |", "|---|---|---|---|---|")
    for finding in findings:
        cells = (finding.verdict.value, finding.subject, finding.id, finding.message, finding.remedy)
        yield f"| {' | '.join(_cell(cell) for cell in cells)} |"
    yield ""


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")


def _plain(text: str) -> str:
    """The text on one line, nothing in it taken for a tag, a link, a picture or a mark."""
    return _MARKS.sub(r"\\\g<0>", one_line(text)).replace("<", "&lt;")


def _longest_fence(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest
