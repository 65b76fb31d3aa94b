"""What others wrote steers no terminal, wherever a verb prints it."""

from __future__ import annotations

import io
import re

import pytest

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.cli.output import echo, echo_in_place
from pai_install.report.console import progress, show_outcome
from pai_install.report.model import HostResult, HostStatus, Outcome, PhaseResult
from pai_install.report.notices import PhaseFinished, PhaseStarted, TaskFinished

EVIL = "a\x1b]0;owned\x07b\x9b2J\u202ec\rd"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def ours(text: str) -> str:
    """The text without the codes that rich writes for colours and lines."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")


def harmless(text: str) -> bool:
    return not any(mark in text for mark in ("\x1b", "\x07", "\x9b", "\u202e"))


@pytest.mark.parametrize("err", [False, True])
def test_texts(capsys: pytest.CaptureFixture[str], err: bool) -> None:
    echo(EVIL, err=err)
    said = capsys.readouterr()
    assert harmless(said.out + said.err)
    assert "\\u001b]0;owned" in (said.err if err else said.out)
    echo_in_place(EVIL)
    assert harmless(capsys.readouterr().err.removeprefix("\r\x1b[K"))


def outcome() -> Outcome:
    phase = PhaseResult("base", EVIL, 1.0, {f"one{EVIL}": HostResult(HostStatus.FAILED)})
    return Outcome(1.0, (phase,), (Finding("x", Verdict.FAIL, EVIL, EVIL, remedy=EVIL),))


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_results_of_runs(stream: type[io.StringIO]) -> None:
    written = stream()
    show_outcome(outcome(), written)
    assert harmless(ours(written.getvalue()))
    assert "owned" in written.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_progress_of_runs(stream: type[io.StringIO]) -> None:
    written = stream()
    with progress(written) as observer:
        observer.notice(PhaseStarted("base", EVIL, (EVIL,), 1, 1))
        observer.notice(TaskFinished("base", EVIL, EVIL, "", "failed", 0.1))
        observer.notice(PhaseFinished(outcome().phases[0]))
    assert harmless(ours(written.getvalue()))
    assert "owned" in written.getvalue()
