"""How runs look on a terminal. Loaded with the first event of a run: verbs that only read do without."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from pai_install.app.frontend import ChangesReady, ClustersChangeReady, PlanReady, PreflightReady, RunEnded
from pai_install.cli.output import echo
from pai_install.preflight.report import PreflightReport, last_line
from pai_install.preflight.report import text as preflight_text
from pai_install.report.console import progress, show_outcome
from pai_install.report.data import RunsReport, run_report
from pai_install.report.diffs import changes_text
from pai_install.report.model import Outcome
from pai_install.report.notices import Observer
from pai_install.report.planned import plan_summary, plan_text
from pai_install.report.virtual_clusters_plan import plan_text as change_text


def open_progress() -> AbstractContextManager[Observer]:
    """The progress on stderr."""
    return progress(sys.stderr)


def event_text(event: PlanReady | PreflightReady | ChangesReady | ClustersChangeReady) -> str:
    """The event as text, with its last line end."""
    match event:
        case PlanReady(plan=plan):
            return f"{plan_text(plan)}{plan_summary(plan, None)}\n"
        case PreflightReady(report=report):
            return f"{_preflight(report)}\n"
        case ChangesReady(changes=changes):
            return changes_text(changes)
        case ClustersChangeReady(change=change):
            return change_text(change)


def show_result(event: RunEnded) -> None:
    """Prints the result of a run."""
    show_outcome(event.outcome, sys.stdout)
    if event.report is not None:
        echo(f"report: {event.report}")


def document(outcomes: Sequence[Outcome], code: int, *, several: bool) -> dict[str, Any] | None:
    """The published form of the runs: of one alone, or of all that the verb made."""
    runs = tuple(map(run_report, outcomes))
    if several:
        return RunsReport(exit_code=code, runs=runs).as_json()
    return runs[0].as_json() if runs else None


def _preflight(report: PreflightReport) -> str:
    """The whole report where it refuses a machine, else one line."""
    if not report.ok:
        return preflight_text(report)
    return f"{last_line(report)}{'; `pai-install preflight` shows them' if report.warnings else ''}"
