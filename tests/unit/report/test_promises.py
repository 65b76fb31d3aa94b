"""The table of the scheduler's self-test."""

from __future__ import annotations

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.report.promises import promises_text


def test_every_promise_has_a_line_and_nothing_else_has() -> None:
    gang = Finding("scheduler-gang", Verdict.PASS, "cluster", "A job starts whole: 0 of 3")
    other = Finding("cluster-dns", Verdict.FAIL, "w1", "the cluster's DNS does not answer")
    assert promises_text([gang, other]) == ("PROPERTY  VERDICT  SEEN\ngang      PASS     A job starts whole: 0 of 3\n")
    assert promises_text([other]) == ""
