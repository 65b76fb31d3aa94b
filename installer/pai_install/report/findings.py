"""Findings as results. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field, WithJsonSchema

from pai_install.checks.finding import Finding, counts
from pai_install.checks.verdict import Action, Verdict
from pai_install.json_schema import Count, OptionalText, ReportObject

_Measure = Annotated[
    Action,
    Field(exclude_if=lambda action: action is Action.NONE),
    WithJsonSchema({"enum": [action.value for action in Action if action is not Action.NONE]}),
]


class FindingEntry(ReportObject):
    """One verdict about one subject. Empty device, action, source, and evidence are left out."""

    id: str
    verdict: Verdict
    subject: str
    message: str
    value: str
    expected: str
    remedy: str
    device: OptionalText
    action: _Measure
    source: OptionalText
    evidence: OptionalText


class VerdictCounts(ReportObject):
    """The number of findings with each verdict, worst first."""

    FAIL: Count
    UNKNOWN: Count
    WARN: Count
    PASS: Count
    SKIP: Count


def finding_entries(findings: Iterable[Finding]) -> tuple[FindingEntry, ...]:
    """The findings as results."""
    return tuple(map(FindingEntry.model_validate, findings))


def verdict_counts(findings: Iterable[Finding]) -> VerdictCounts:
    """How often each verdict was given."""
    return VerdictCounts(**counts(findings))
