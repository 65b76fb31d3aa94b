"""The table of the scheduler's self-test."""

from __future__ import annotations

from syrupy.assertion import SnapshotAssertion

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.report.promises import promises_text


def test_every_promise_has_a_line_and_nothing_else_has(snapshot: SnapshotAssertion) -> None:
    gang = Finding("scheduler-gang", Verdict.PASS, "cluster", "A job starts whole: 0 of 3")
    other = Finding("cluster-dns", Verdict.FAIL, "w1", "the cluster's DNS does not answer")
    assert promises_text([gang, other]) == snapshot
    assert promises_text([other]) == ""


def test_a_broken_promise_has_its_numbers(snapshot: SnapshotAssertion) -> None:
    reclaim = Finding("scheduler-reclaim", Verdict.FAIL, "cluster", "it waited too long", value="31 s", expected="30 s")
    assert promises_text([reclaim]).splitlines()[1] == snapshot
