"""One exit code for a whole run: the gravest thing that happened."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode
from pai_install.report.model import OBSERVE, Counts, Failure, HostResult, HostStatus, Outcome, PhaseResult
from tests.unit.report.outcomes import FINE, TROUBLED

BAD = (Finding("x", Verdict.FAIL, "a", "no"),)


def outcome(*statuses: str, name: str = "base", check: bool = False) -> Outcome:
    hosts = {f"h{number}": HostResult(HostStatus(status)) for number, status in enumerate(statuses)}
    return Outcome(1.0, (PhaseResult(name, name, 1.0, hosts),), check=check)


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (Outcome(0.0), 0),
        (outcome("ok", "changed"), 0),
        (outcome("ok", "left"), 0),
        (outcome("unreachable", "ok"), 5),
        (outcome("unreachable", "failed"), 6),
        (outcome("failed", check=True), 0),
        (outcome("failed", name=OBSERVE, check=True), 6),
        (outcome("unreachable", check=True), 5),
        (replace(outcome("ok"), findings=BAD), 7),
        (replace(outcome("unreachable"), findings=BAD), 5),
        (replace(outcome("failed"), findings=BAD), 6),
        (replace(outcome("failed"), interrupted=True), 130),
        (Outcome(0.0, (PhaseResult("p", "P", 0.0, {}, Failure("", message="x")),)), 6),
    ],
)
def test_exit_code(made: Outcome, code: int) -> None:
    assert made.exit_code == ExitCode(code)
    assert made.ok == (code == 0)


def test_counts_add_up_over_phases() -> None:
    assert FINE.counts == {
        "master": Counts(ok=6, skipped=2, tasks=6),
        "one": Counts(ok=6, changed=1, skipped=2, tasks=6),
    }


def test_left_names_every_phase_that_did_not_work() -> None:
    assert FINE.left == {}
    assert TROUBLED.left == {
        "one": ("Prepare the operating system", "Join the workers"),
        "two": ("Observe the machines", "Prepare the operating system", "Join the workers"),
    }


def test_failures_are_in_order_and_complete() -> None:
    assert [failure.host for failure in TROUBLED.failures] == ["two", "one"]
    assert TROUBLED.error is None
