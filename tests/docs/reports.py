"""The table of known causes in docs/reports.md."""

from __future__ import annotations

from pai_install.report.explain import known_causes
from tests.docs.markdown import table, with_generated


def with_causes(text: str) -> str:
    """The page with its table made anew. Raises ValueError where it has no marks."""
    return with_generated(text, table(("Cause", "What to do"), ((one.cause, one.remedy) for one in known_causes())))
