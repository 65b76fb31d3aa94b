"""What the self-test of the scheduler found, as a table. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from pai_install.checks.finding import Finding
from pai_install.report.storages import table
from pai_install.schedulers.self_test.guarantees import PROMISES


def promises_text(findings: Iterable[Finding]) -> str:
    """A line for each promise; empty where none was tried."""
    rows = [(one.id.removeprefix("scheduler-"), str(one.verdict), _seen(one)) for one in findings if one.id in PROMISES]
    return table([("PROPERTY", "VERDICT", "SEEN"), *rows]) if rows else ""


def _seen(one: Finding) -> str:
    """What was seen, with its numbers: how far a broken promise is from a kept one."""
    numbers = [one.value] if one.value else []
    numbers += [f"expected: {one.expected}"] if one.expected else []
    return f"{one.message} ({'; '.join(numbers)})" if numbers else one.message
