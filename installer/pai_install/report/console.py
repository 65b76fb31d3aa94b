"""A run on the terminal: live where there is one, one line per step where there is not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook, RenderResult
from rich.live import Live
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from pai_install.report.model import Counts, Failure, HostStatus, Outcome, PhaseResult
from pai_install.report.notices import (
    Notice,
    Observer,
    PhaseFinished,
    PhaseStarted,
    RunFinished,
    TaskFinished,
    TaskStarted,
    Waiting,
)
from pai_install.report.words import headline, host_word, phase_line, took
from pai_install.system.plain import plain_text
from pai_install.system.words import plural

_STYLES = {
    HostStatus.OK: "green",
    HostStatus.CHANGED: "yellow",
    HostStatus.FAILED: "bold red",
    HostStatus.UNREACHABLE: "bold red",
    HostStatus.REFUSED: "bold red",
    HostStatus.LEFT: "dim",
    HostStatus.INTERRUPTED: "magenta",
}
# from so many machines on, only those of interest are named one by one
_MANY = 20
_NAMED = 3
_ROWS = 50


class _Plain:
    """Something to print. Characters of its texts that steer a terminal appear as their numbers."""

    def __init__(self, content: RenderableType) -> None:
        self._content = content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._content, options):
            yield segment if segment.control else Segment(plain_text(segment.text), segment.style)


class _PlainTexts(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        # Texts come from machines. Their control characters could move the cursor or hide lines on the terminal.
        return [_Plain(content) for content in renderables]


def _plain_console(stream: TextIO, width: int | None = None) -> Console:
    console = Console(file=stream, highlight=False, width=width)
    console.push_render_hook(_PlainTexts())
    return console


@contextmanager
def progress(stream: TextIO) -> Iterator[Observer]:
    """The observer that fits the stream: live on a terminal, plain lines elsewhere.

    However the block ends, the terminal is left as it was.
    """
    if not stream.isatty():
        yield LineProgress(stream)
        return
    live = LiveProgress(_plain_console(stream))
    try:
        yield live
    finally:
        live.stop()


class Times:
    """How long each machine of a phase was at work: which ones the others waited for."""

    def __init__(self) -> None:
        self._spent: dict[str, float] = {}

    def notice(self, notice: Notice) -> None:
        """Counts a completed task. A new phase starts at zero."""
        match notice:
            case PhaseStarted():
                self._spent = {}
            case TaskFinished():
                self._spent[notice.host] = self._spent.get(notice.host, 0.0) + notice.duration_s
            case _:
                return

    def slowest(self) -> str:
        """Returns the slowest machines of a large phase for the end of a line, or ""."""
        if len(self._spent) < _MANY:
            return ""
        found = sorted(self._spent.items(), key=lambda item: -item[1])[:_NAMED]
        return f"; slowest: {', '.join(f'{host} {took(spent)}' for host, spent in found)}"


class LineProgress:
    """Prints one line at the start and end of a phase, for each failed host, and for the reason of a wait."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._times = Times()

    def notice(self, notice: Notice) -> None:
        """Writes the lines of a notice."""
        self._times.notice(notice)
        match notice:
            case PhaseStarted():
                self._line(
                    f"[{notice.number}/{notice.total}] {notice.title} ({plural(len(notice.hosts), notice.subject)})"
                )
            case Waiting():
                self._line(f"      {notice.text}")
            case TaskFinished(outcome="failed" | "unreachable"):
                self._line(f"      {notice.host}: {notice.outcome}: {notice.task}")
            case PhaseFinished(phase=phase):
                self._line(f"      {phase_line(phase)}{self._times.slowest()}")
            case _:
                return

    def _line(self, text: str) -> None:
        self._stream.write(plain_text(text) + "\n")
        self._stream.flush()


class LiveProgress:
    """Shows one updating line for the current task, and one permanent line for each completed phase."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._live: Live | None = None
        self._phase = PhaseStarted("", "", (), 0, 0)
        self._task = ""
        self._answered: set[str] = set()
        self._times = Times()
        self._began = 0.0

    def notice(self, notice: Notice) -> None:
        """Redraws after a notice."""
        self._times.notice(notice)
        match notice:
            case PhaseStarted():
                self._begin(notice)
            case TaskStarted():
                self._task, self._answered = notice.task, set()
            case Waiting():
                self._task, self._answered = notice.text, set()
            case TaskFinished(outcome="failed" | "unreachable"):
                self._print(f"  [bold red]✗[/] {escape(notice.host)}: {escape(notice.task)}")
                self._answered.add(notice.host)
            case TaskFinished():
                self._answered.add(notice.host)
            case PhaseFinished(phase=phase):
                self._end(phase)
            case RunFinished():
                self.stop()
            case _:
                return

    def _begin(self, phase: PhaseStarted) -> None:
        self.stop()
        self._phase, self._task, self._answered = phase, "", set()
        self._began = self._clock()
        self._live = Live(
            self._status(), console=self._console, refresh_per_second=4, transient=True, get_renderable=self._status
        )
        self._live.start()

    def _end(self, phase: PhaseResult) -> None:
        self.stop()
        good = all(result.status.good for result in phase.hosts.values())
        mark = "[green]✓[/]" if good else "[bold red]✗[/]"
        self._print(f"{mark} {escape(phase.title)}: {escape(phase_line(phase))}{escape(self._times.slowest())}")

    def stop(self) -> None:
        """Removes the updating line, if any."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _print(self, text: str) -> None:
        self._console.print(text)

    def _status(self) -> Text:
        phase = self._phase
        text = Text(
            f"  [{phase.number}/{phase.total}] {plain_text(phase.title)}",
            style="bold",
            overflow="ellipsis",
            no_wrap=True,
        )
        text.append(f"  {took(self._clock() - self._began)}", style="dim")
        if self._task:
            text.append(
                f"  {len(self._answered)}/{len(phase.hosts)} machines  {plain_text(self._task)}", style="not bold"
            )
            waiting = [host for host in phase.hosts if host not in self._answered]
            if len(phase.hosts) >= _MANY and 0 < len(waiting) <= _NAMED:
                text.append(f"  waiting for {plain_text(', '.join(waiting))}", style="not bold")
        return text


def show_outcome(outcome: Outcome, stream: TextIO) -> None:
    """Prints the result: a table of machines, failures with causes, remaining work, and one final sentence."""
    # a pipe has no width of its own; long paths must stay in one piece there
    console = _plain_console(stream, width=None if stream.isatty() else 200)
    if outcome.phases:
        console.print(_table(outcome))
    for failure in outcome.failures:
        _show_failure(console, failure)
    for finding in outcome.findings:
        if finding.verdict in ("FAIL", "WARN", "UNKNOWN"):
            console.print(f"{finding.verdict} {finding.subject}: {finding.message} [{finding.id}]", markup=False)
            if finding.remedy:
                console.print(f"  what to do: {finding.remedy}", markup=False)
    for host, titles in outcome.left.items():
        console.print(f"{host}: still to do: {', '.join(titles)}", markup=False)
    for command in outcome.undo:
        console.print(f"undo: {command}", markup=False)
    console.print(headline(outcome), markup=False, style="bold green" if outcome.ok else "bold red")


def _table(outcome: Outcome) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("machine")
    for name in ("result", "tasks", "changed", "failed", "skipped"):
        table.add_column(name, justify="left" if name == "result" else "right")
    rows, others = _rows(outcome)
    for host, counts in rows.items():
        status = host_word(outcome, host)
        numbers = (counts.tasks, counts.changed, counts.failed, counts.skipped)
        table.add_row(escape(host), Text(status.value, style=_STYLES[status]), *map(str, numbers))
    if others:
        total = sum(others.values(), Counts())
        numbers = (total.tasks, total.changed, total.failed, total.skipped)
        table.add_row(f"{len(others)} others", Text("ok", style=_STYLES[HostStatus.OK]), *map(str, numbers))
    return table


def _rows(outcome: Outcome) -> tuple[dict[str, Counts], dict[str, Counts]]:
    """Returns machines with a row each, and machines that are only counted: successful ones, if there are very many."""
    counts = dict(outcome.counts)
    if len(counts) <= _ROWS:
        return counts, {}
    well = {host: found for host, found in counts.items() if host_word(outcome, host).good}
    return {host: found for host, found in counts.items() if host not in well}, well


def _show_failure(console: Console, failure: Failure) -> None:
    where = f" ({failure.task_path})" if failure.task_path else ""
    console.print(f"{failure.host or 'Ansible'}: {failure.task or 'login'}{where}", markup=False, style="bold")
    for name, text in (
        ("message", failure.message),
        ("likely cause", failure.cause),
        ("what to do", failure.remedy),
    ):
        if text:
            console.print(f"  {name}: {_quoted(text)}", markup=False)
    if failure.evidence and not failure.cause:
        last = failure.evidence.splitlines()[-8:]
        console.print("\n".join(f"    | {line}" for line in last), markup=False)


def _quoted(text: str) -> str:
    """The text with its further lines marked as belonging to it: none may look like a line of ours."""
    return text.strip().replace("\n", "\n    | ")
