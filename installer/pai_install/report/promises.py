"""The results of the scheduler's self-test as a table. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from pai_install.checks.finding import Finding
from pai_install.report.table import table
from pai_install.schedulers.self_test.guarantees import PROMISES


def promises_text(findings: Iterable[Finding]) -> str:
    """Returns a line for each promise, or "" without tests."""
    rows = [(one.id.removeprefix("scheduler-"), str(one.verdict), _seen(one)) for one in findings if one.id in PROMISES]
    return table([("PROPERTY", "VERDICT", "SEEN"), *rows]) if rows else ""


def _seen(one: Finding) -> str:
    """Returns the observation with its numbers, which show the distance from the promise."""
    numbers = [one.value] if one.value else []
    numbers += [f"expected: {one.expected}"] if one.expected else []
    return f"{one.message} ({'; '.join(numbers)})" if numbers else one.message
