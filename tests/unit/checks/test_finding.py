"""A verdict that is not understood is never a pass."""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from pai_install.checks.finding import Finding, counts, parse_finding, worst
from pai_install.checks.verdict import Action, Verdict
from pai_install.report.findings import FindingEntry


def as_json(finding: Finding) -> dict[str, Any]:
    """The finding in a report, compared with its schema."""
    data = FindingEntry.model_validate(finding).as_json()
    jsonschema.validate(data, FindingEntry.model_json_schema(mode="serialization"))
    return data


@pytest.mark.parametrize("verdict", list(Verdict))
def test_finding_survives_json(verdict: Verdict) -> None:
    finding = Finding("swap-off", verdict, "one", "swap is on", "2 GiB", "none", "swapoff -a")
    assert parse_finding(as_json(finding)) == finding
    assert set(as_json(finding)) == {"id", "verdict", "subject", "message", "value", "expected", "remedy"}


def test_every_field_survives_json() -> None:
    finding = Finding("x", Verdict.FAIL, "one", "m", "v", "e", "r", "0000:01:00.0", Action.RMA, "NVIDIA", "nvidia-smi")
    assert set(as_json(finding)) == set(Finding._fields)
    assert parse_finding(as_json(finding)) == finding
    assert finding.where == "one 0000:01:00.0"


@pytest.mark.parametrize("raw", [{}, {"verdict": None}, {"verdict": "OK"}, {"verdict": True}, {"verdict": ["PASS"]}])
def test_strange_verdict_is_unknown(raw: dict[str, Any]) -> None:
    assert parse_finding(raw, subject="one").verdict is Verdict.UNKNOWN


def test_strange_action_is_none() -> None:
    assert parse_finding({"verdict": "FAIL", "action": "explode"}).action is Action.NONE


def test_holes_are_filled_and_values_become_text() -> None:
    finding = parse_finding({"verdict": "fail", "value": 0, "expected": None, "subject": ""}, subject="one")
    assert finding == Finding("unnamed", Verdict.FAIL, "one", "", value="0")


@pytest.mark.parametrize(
    ("verdicts", "gravest"),
    [("", "SKIP"), ("PASS SKIP", "PASS"), ("SKIP", "SKIP"), ("WARN PASS", "WARN"), ("UNKNOWN WARN", "UNKNOWN"),
     ("UNKNOWN FAIL WARN", "FAIL")],
)  # fmt: skip
def test_worst(verdicts: str, gravest: str) -> None:
    assert worst(Finding("x", Verdict(word), "s", "m") for word in verdicts.split()).value == gravest


def test_counts_name_every_verdict_the_gravest_first() -> None:
    found = counts([Finding("x", Verdict.PASS, "s", ""), Finding("y", Verdict.PASS, "s", "")])
    assert found == {"FAIL": 0, "UNKNOWN": 0, "WARN": 0, "PASS": 2, "SKIP": 0}
    assert list(found) == ["FAIL", "UNKNOWN", "WARN", "PASS", "SKIP"]
