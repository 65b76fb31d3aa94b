"""The report as one self-contained HTML page: no script, no file beside it, readable offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from pai_install.checks.report.html import Link, Page, ReportMachine, parts, render
from pai_install.checks.verdict import Verdict
from pai_install.report.model import Counts, Failure, HostStatus, Outcome, TaskRecord
from pai_install.report.words import headline, host_word, took

# which colour and sign a status has
_KINDS = {
    HostStatus.OK: Verdict.PASS,
    HostStatus.CHANGED: Verdict.PASS,
    HostStatus.FAILED: Verdict.FAIL,
    HostStatus.UNREACHABLE: Verdict.FAIL,
    HostStatus.REFUSED: Verdict.FAIL,
    HostStatus.INTERRUPTED: Verdict.UNKNOWN,
    HostStatus.LEFT: Verdict.WARN,
}
# files beside the page in the run's folder
LINKS = (
    Link("this report as JSON", "report.json"),
    Link("this report as Markdown", "report.md"),
    Link("every task of this run", "events.jsonl"),
    Link("all runs of this site", "../"),
    Link("pai-install health --format html --out health.html"),
    Link("pai-install health history MACHINE"),
)


class RunRow(NamedTuple):
    """One machine in the table of steps. word: its gravest status."""

    machine: ReportMachine
    word: str
    counts: Counts


def html(outcome: Outcome, *, title: str, machines: Sequence[ReportMachine] = (), links: Sequence[Link] = LINKS) -> str:
    """Returns the whole page. `title` contains the site and the time of the run. machines: of the site, in order."""
    verdict = Verdict.PASS if outcome.ok else Verdict.FAIL
    page = Page(title, verdict, f"{headline(outcome)} (exit code {int(outcome.exit_code)})", machines, links)
    every = _rows(outcome, {machine.name: machine for machine in machines})
    return render(
        "run.html",
        package="pai_install.report",
        page=page,
        outcome=outcome,
        kinds={status.value: kind for status, kind in _KINDS.items()},
        took=took,
        open_runs=[row for row in every if not HostStatus(row.word).good],
        calm_runs=[row for row in every if HostStatus(row.word).good],
        failures=_failures(outcome),
        left=_left(outcome),
        changed=_changed(outcome),
        **parts(page, outcome.findings),
    )


def _rows(outcome: Outcome, machines: Mapping[str, ReportMachine]) -> list[RunRow]:
    return [
        RunRow(machines.get(host, ReportMachine(host)), host_word(outcome, host).value, counts)
        for host, counts in outcome.counts.items()
    ]


def _failures(outcome: Outcome) -> list[tuple[Failure, list[Failure]]]:
    """Failures of one task that say the same: the first of them, and all."""
    alike: dict[tuple[str, str, str], list[Failure]] = {}
    for failure in outcome.failures:
        alike.setdefault((failure.task, failure.message, failure.remedy), []).append(failure)
    return [(found[0], [replace(failure, host=failure.host or "Ansible") for failure in found])
            for found in alike.values()]  # fmt: skip


def _left(outcome: Outcome) -> dict[tuple[str, ...], list[str]]:
    """Titles of the steps that are left -> the machines where they are."""
    found: dict[tuple[str, ...], list[str]] = {}
    for host, titles in outcome.left.items():
        found.setdefault(titles, []).append(host)
    return found


def _changed(outcome: Outcome) -> dict[str, list[TaskRecord]]:
    """Returns host -> its tasks with changes, in order. Hosts without changes are omitted."""
    changes: dict[str, list[TaskRecord]] = {}
    for phase in outcome.phases:
        for host, result in phase.hosts.items():
            if result.changes:
                changes.setdefault(host, []).extend(result.changes)
    return changes
