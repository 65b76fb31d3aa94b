"""Durations and sentences for people."""

from __future__ import annotations

from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.report.model import Failure, HostResult, HostStatus, Outcome, PhaseResult
from pai_install.report.words import headline, host_word, phase_line, took
from tests.unit.report.outcomes import FINE, TROUBLED


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"), (9.94, "9.9 s"), (9.96, "10.0 s"), (10.4, "10 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"),
        (3599.6, "1 h 0 min"), (3900, "1 h 5 min"),
    ],
)  # fmt: skip
def test_took(seconds: float, text: str) -> None:
    assert took(seconds) == text


def test_gravest_word_of_a_machine() -> None:
    assert host_word(FINE, "master") is HostStatus.OK
    assert host_word(FINE, "one") is HostStatus.CHANGED
    assert host_word(TROUBLED, "one") is HostStatus.FAILED
    assert host_word(TROUBLED, "two") is HostStatus.UNREACHABLE


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (FINE, "done in 1 min 15 s: 1 change"),
        (Outcome(2.0), "done in 2.0 s: nothing to change"),
        (Outcome(2.0, check=True), "checked in 2.0 s; nothing was changed"),
        (TROUBLED, "not complete after 1 h 6 min: one failed"),
        (replace(FINE, interrupted=True), "interrupted after 1 min 15 s. Run the same command again to continue"),
        (replace(FINE, findings=TROUBLED.findings), "done in 1 min 15 s, but a check failed"),
        (
            Outcome(2.0, (PhaseResult("p", "P", 1.0, {}, Failure("", message="Ansible broke down")),)),
            "stopped after 2.0 s: Ansible broke down",
        ),
        (
            Outcome(
                2.0, (PhaseResult("p", "P", 1.0, {f"h{n}": HostResult(HostStatus.UNREACHABLE) for n in range(7)}),)
            ),
            "not complete after 2.0 s: h0, h1, h2, h3, h4 and 2 more did not answer",
        ),
    ],
)
def test_headline(outcome: Outcome, words: str) -> None:
    assert headline(outcome) == words


def test_phase_lines(snapshot: SnapshotAssertion) -> None:
    assert phase_line(FINE.phases[1]) == snapshot
    assert phase_line(TROUBLED.phases[1]) == snapshot
    assert phase_line(TROUBLED.phases[2]) == snapshot
    assert phase_line(PhaseResult("p", "P", 0.5, {})) == "0 tasks, 0.5 s"
