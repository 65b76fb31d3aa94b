"""Progress: lines where there is no terminal, a moving line where there is one."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from pai_install.report.console import LineProgress, LiveProgress, progress, show_outcome
from pai_install.report.notices import PhaseFinished, PhaseStarted, TaskFinished, TaskStarted, Waiting

HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """It is."""
        return True


def a_run(kit: Any, observer: Any) -> None:
    base = kit.done(
        kit.event("ok", "one", "Look [bold]"),
        kit.event("failed", "two", "Break [/x]", msg="no"),
        failures=["two"],
    )
    plan = kit.plan(kit.phase("base", "one", "two"), kit.phase("workers", "two"))
    kit.run(plan, kit.engine({"base.yml": base}), [observer])


def test_lines_without_a_terminal(kit: Any, snapshot: SnapshotAssertion) -> None:
    stream = io.StringIO()
    a_run(kit, LineProgress(stream))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "[1/2] Base (2 machines)"
    assert lines[1] == snapshot
    assert lines[2].startswith("      1 ok, 1 failed, 2 tasks, ")
    assert lines[3] == snapshot
    assert len(lines) == 4
    assert "\x1b" not in stream.getvalue()


def test_live_line_ends_as_one_line_per_phase(kit: Any, snapshot: SnapshotAssertion) -> None:
    stream = Terminal()
    console = Console(file=stream, force_terminal=True, width=100, highlight=False, color_system=None)
    a_run(kit, LiveProgress(console))
    kept = stream.getvalue().split("\r")[-1]
    assert kept == snapshot
    assert "✗ two: Break [/x]" in stream.getvalue()
    assert stream.getvalue() == snapshot


def test_live_line_follows_the_task() -> None:
    live = LiveProgress(Console(file=io.StringIO(), width=100), clock=lambda: 5.0)
    live.notice(PhaseStarted("base", "Base", ("a", "b"), 2, 7))
    live.notice(TaskStarted("base", "Write a file"))
    live.notice(TaskFinished("base", "a", "Write a file", "x:1", "ok", 0.1))
    try:
        assert live._status().plain == "  [2/7] Base  0.0 s  1/2 machines  Write a file"
    finally:
        live.stop()


def test_live_line_says_what_is_waited_for() -> None:
    live = LiveProgress(Console(file=io.StringIO(), width=100), clock=lambda: 5.0)
    live.notice(PhaseStarted("drain", "Drain", ("a",), 1, 1))
    live.notice(TaskStarted("drain", "Move the pods away"))
    live.notice(Waiting("drain", "a waits for jobs: ml/train"))
    try:
        assert live._status().plain == "  [1/1] Drain  0.0 s  0/1 machines  a waits for jobs: ml/train"
    finally:
        live.stop()


def test_stream_decides() -> None:
    with progress(io.StringIO()) as lines, progress(Terminal()) as live:
        assert isinstance(lines, LineProgress)
        assert isinstance(live, LiveProgress)


def test_terminal_is_given_back_after_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with pytest.raises(ZeroDivisionError), progress(stream) as live:  # noqa: PT012 - what comes before matters
        live.notice(PhaseStarted("base", "Base", ("a",), 1, 1))
        raise ZeroDivisionError
    assert stream.getvalue().rindex(SHOW_CURSOR) > stream.getvalue().rindex(HIDE_CURSOR)


def many(count: int) -> tuple[str, ...]:
    return tuple(f"w{number:04}" for number in range(count))


def task(host: str, seconds: float, outcome: str = "ok") -> TaskFinished:
    return TaskFinished("base", host, "Prepare", "", outcome, seconds, {})


@pytest.mark.parametrize(("count", "said"), [(3, False), (1000, True)])
def test_a_phase_of_many_machines_names_the_slowest(kit: Any, count: int, said: bool) -> None:
    stream, hosts = io.StringIO(), many(count)
    lines = LineProgress(stream)
    lines.notice(PhaseStarted("base", "Base", hosts, 1, 1))
    for number, host in enumerate(hosts):
        lines.notice(task(host, number / 10))
    outcome = kit.run(kit.plan(kit.phase("base", "one")), kit.engine({"base.yml": kit.fine("one")}), [])
    lines.notice(PhaseFinished(outcome.phases[0]))
    last = stream.getvalue().splitlines()[-1]
    assert ("; slowest: w0999 " in last) is said
    assert last.count("w0") == (3 if said else 0)
    assert len(stream.getvalue().splitlines()) == 2, "machines that are well have no line of their own"


def test_a_failure_is_told_at_once(kit: Any) -> None:
    stream, hosts = io.StringIO(), many(1000)
    lines = LineProgress(stream)
    lines.notice(PhaseStarted("base", "Base", hosts, 1, 1))
    lines.notice(task("w0007", 1, "failed"))
    assert stream.getvalue().splitlines()[-1] == "      w0007: failed: Prepare"
    del kit


def test_the_live_line_names_the_last_ones() -> None:
    live = LiveProgress(Console(file=io.StringIO(), width=200, force_terminal=True))
    hosts = many(1000)
    live.notice(PhaseStarted("base", "Base", hosts, 1, 1))
    live.notice(TaskStarted("base", "Prepare"))
    for host in hosts[:-2]:
        live.notice(task(host, 1))
    assert live._status().plain.endswith("998/1000 machines  Prepare  waiting for w0998, w0999")
    live.stop()


def test_the_table_of_many_machines_counts_those_that_are_well(kit: Any) -> None:
    hosts = many(200)
    events = kit.done(
        *(kit.event("ok", host) for host in hosts[1:]),
        kit.event("failed", hosts[0], msg="no"),
        failures=[hosts[0]],
        rc=2,
    )
    outcome = kit.run(kit.plan(kit.phase("base", *hosts)), kit.engine({"base.yml": events}), [])
    stream = io.StringIO()
    show_outcome(outcome, stream)
    rows = [line for line in stream.getvalue().splitlines() if line.startswith(("w0", "199 others"))]
    assert [row.split()[0] for row in rows][:2] == ["w0000", "199"]
