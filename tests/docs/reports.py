"""The table of known causes in docs/reports.md."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.report.causes import known_causes
from tests.docs.markdown import table


def causes() -> Iterator[str]:
    """Its lines."""
    yield from table(("Cause", "What to do"), ((one.cause, one.remedy) for one in known_causes()))
