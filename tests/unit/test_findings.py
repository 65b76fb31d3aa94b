"""A verdict that is not understood is never a pass."""

from __future__ import annotations

from typing import Any

import pytest

from pai_install.findings import Finding, Verdict, parse_finding, worst


@pytest.mark.parametrize("verdict", list(Verdict))
def test_finding_survives_json(verdict: Verdict) -> None:
    finding = Finding("swap-off", verdict, "one", "swap is on", "2 GiB", "none", "swapoff -a")
    assert parse_finding(finding.as_json()) == finding
    assert set(finding.as_json()) == {"id", "verdict", "subject", "message", "value", "expected", "remedy"}


@pytest.mark.parametrize("raw", [{}, {"verdict": None}, {"verdict": "OK"}, {"verdict": True}, {"verdict": ["PASS"]}])
def test_strange_verdict_is_unknown(raw: dict[str, Any]) -> None:
    assert parse_finding(raw, subject="one").verdict is Verdict.UNKNOWN


def test_holes_are_filled_and_values_become_text() -> None:
    finding = parse_finding({"verdict": "fail", "value": 0, "expected": None, "subject": ""}, subject="one")
    assert finding == Finding("unnamed", Verdict.FAIL, "one", "", value="0")


@pytest.mark.parametrize(
    ("verdicts", "gravest"),
    [("", "PASS"), ("PASS SKIP", "PASS"), ("SKIP", "PASS"), ("WARN PASS", "WARN"), ("UNKNOWN WARN", "UNKNOWN"),
     ("UNKNOWN FAIL WARN", "FAIL")],
)  # fmt: skip
def test_worst(verdicts: str, gravest: str) -> None:
    assert worst(Finding("x", Verdict(word), "s", "m") for word in verdicts.split()).value == gravest
