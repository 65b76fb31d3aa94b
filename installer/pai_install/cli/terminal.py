"""The front end of the command line: progress and questions on stderr, results on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click

from pai_install.app.frontend import (
    ChangesReady,
    ClustersChangeReady,
    CopyProgress,
    Event,
    FileDifference,
    JobChanged,
    LogLine,
    Message,
    PlanReady,
    PreflightReady,
    Question,
    RunEnded,
)
from pai_install.checks.verdict import Verdict
from pai_install.cli.copy_progress import CopyLine
from pai_install.cli.output import confirm, echo, echo_log, prompt
from pai_install.errors import ExitCode, PaiError
from pai_install.json_schema import ReportObject
from pai_install.run.workflow import MachinesMissing, RollbackStarted, StageFinished, StageStarted

if TYPE_CHECKING:
    from pai_install.app.frontend import RunEvent
    from pai_install.jobs.state import JobState
    from pai_install.report.model import Outcome
    from pai_install.report.notices import Observer


class Terminal:
    """Shows events as they come. yes: agree to every question. output_format: of the result on stdout."""

    def __init__(self, *, yes: bool = False, output_format: str = "text") -> None:
        self.yes = yes
        self.output_format = output_format
        self.as_json = output_format == "json"
        self._outcomes: list[Outcome] = []
        self._stack = ExitStack()
        self._progress: Observer | None = None
        self._copy = CopyLine()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)  # the terminal is left as it was

    def notify(self, event: Event) -> None:
        """Shows the event."""
        self._copy.notify(event)
        match event:
            case Message(text=text):
                echo(text, err=True)
            case LogLine():
                self._show_line(event)
            case FileDifference(text=text):
                echo(text, nl=False, err=self.as_json)
            case PlanReady() | PreflightReady() | ChangesReady() | ClustersChangeReady() | RunEnded():
                self._notify_of_run(event)
            case JobChanged(job=job):
                echo(_job(job), err=True)
            case CopyProgress() | StageFinished():
                pass
            case StageStarted() | RollbackStarted() | MachinesMissing():
                _show_stage(event)
            case _:
                self._observer().notice(event)

    def _show_line(self, line: LogLine) -> None:
        if self.as_json:
            echo(json.dumps({"source": line.source, "text": line.text}))
        else:
            text = f"{line.source}: {line.text}" if line.mixed else line.text
            echo_log(f"{text}\n")

    def _notify_of_run(self, event: RunEvent) -> None:
        from pai_install.cli import run_output  # noqa: PLC0415 - see there

        match event:
            case PlanReady():
                if not self.as_json:
                    echo(run_output.event_text(event), nl=False, err=True)
            case PreflightReady():
                echo(run_output.event_text(event), nl=False, err=True)
            case ChangesReady() | ClustersChangeReady():
                echo(run_output.event_text(event), nl=False, err=self.as_json)
            case RunEnded():
                self._outcomes.append(event.outcome)
                if not self.as_json:
                    run_output.show_result(event)

    def _observer(self) -> Observer:
        if self._progress is None:
            from pai_install.cli.run_output import open_progress  # noqa: PLC0415 - see there

            self._progress = self._stack.enter_context(open_progress())
        return self._progress

    def confirm(self, question: Question) -> bool:
        """Asks on stderr. The end of the input means no. Raises KeyboardInterrupt on Ctrl-C."""
        if self.yes:
            return True
        try:
            if question.word:
                text = f"{question.text}: type {question.word}"
                return prompt(text) == question.word
            return confirm(f"{question.text}?")
        except click.Abort as stop:  # click raises it for Ctrl-C and for the end of the input
            if isinstance(stop.__context__, EOFError):
                return False
            raise KeyboardInterrupt from None

    def require_answers(self) -> None:
        """Raises PaiError without --yes where stdin is not a terminal."""
        # A question in a pipeline would read its answer from data of another program, or wait without end.
        if not self.yes and not sys.stdin.isatty():
            raise PaiError(
                "cannot ask for confirmation: stdin is not a terminal",
                code="no-terminal",
                remedy="add --yes",
                exit_code=ExitCode.USAGE,
            )

    def inform(self, text: str) -> None:
        """Prints a line beside the result."""
        echo(text, err=True)

    def show(self, result: ReportObject | Mapping[str, Any] | Callable[[], ReportObject], text: str) -> None:
        """Prints the result of a verb that reads. text: with its last line end. A callable runs for JSON alone."""
        if self.as_json:
            made = result() if callable(result) else result
            text = f"{json.dumps(made.as_json() if isinstance(made, ReportObject) else made, indent=2)}\n"
        echo(text, nl=False)

    def show_runs(self, code: int, *, several: bool) -> None:
        """Prints the document of the runs with --format json. several: whether the verb may make more than one."""
        if not self.as_json:
            return
        from pai_install.cli.run_output import document  # noqa: PLC0415 - see there

        if data := document(self._outcomes, code, several=several):
            echo(json.dumps(data, indent=2))

    def show_passed(self) -> None:
        """Prints the findings of passed runs, for commands with such a result."""
        for outcome in () if self.as_json else self._outcomes:
            for finding in sorted(outcome.findings, key=lambda finding: (finding.subject, finding.message)):
                if finding.verdict is Verdict.PASS:
                    value = f" ({finding.value})" if finding.value else ""
                    echo(f"{finding.subject}: {finding.message}{value}")


def _job(job: JobState) -> str:
    from pai_install.report.jobs import job_text  # noqa: PLC0415 - only `job submit --watch` shows it

    return job_text(job)


def _show_stage(event: StageStarted | RollbackStarted | MachinesMissing) -> None:
    match event:
        case StageStarted(title=title):
            echo(f"\n{title}", err=True)
        case RollbackStarted(title=title):
            echo(f"\nRolling back: {title}", err=True)
        case MachinesMissing(machines=machines):
            echo(f"waiting for {', '.join(machines)}", err=True)
