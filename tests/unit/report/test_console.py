"""Progress: lines where there is no terminal, a moving line where there is one."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from pai_install.report.console import LineProgress, LiveProgress, progress
from pai_install.report.notices import PhaseStarted, TaskFinished, TaskStarted

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


def test_lines_without_a_terminal(kit: Any) -> None:
    stream = io.StringIO()
    a_run(kit, LineProgress(stream))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "[1/2] Base (2 machines)"
    assert lines[1] == "      two: failed: Break [/x]"
    assert lines[2].startswith("      1 ok, 1 failed, 2 tasks, ")
    assert lines[3] == "      left out: failed in step base"
    assert len(lines) == 4
    assert "\x1b" not in stream.getvalue()


def test_live_line_ends_as_one_line_per_phase(kit: Any) -> None:
    stream = Terminal()
    console = Console(file=stream, force_terminal=True, width=100, highlight=False, color_system=None)
    a_run(kit, LiveProgress(console))
    kept = stream.getvalue().split("\r")[-1]
    assert "✗ Workers: left out: failed in step base" in kept
    assert "✗ two: Break [/x]" in stream.getvalue()
    assert "✗ Base: 1 ok, 1 failed, 2 tasks" in stream.getvalue()


def test_live_line_follows_the_task() -> None:
    live = LiveProgress(Console(file=io.StringIO(), width=100), clock=lambda: 5.0)
    live.notice(PhaseStarted("base", "Base", ("a", "b"), 2, 7))
    live.notice(TaskStarted("base", "Write a file"))
    live.notice(TaskFinished("base", "a", "Write a file", "x:1", "ok", 0.1))
    try:
        assert live._status().plain == "  [2/7] Base  0.0 s  1/2 machines  Write a file"
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
