"""docs/decisions/README.md: the list of decisions."""

from __future__ import annotations

from pathlib import Path

from tests.docs.markdown import page


def decisions_page(root: Path) -> str:
    """The decisions below `root`, by their titles, oldest first."""
    records = sorted((root / "docs" / "decisions").glob("[0-9]*.md"))
    return page("Decisions", [f"- [{_title(record)}]({record.name})" for record in records])


def _title(record: Path) -> str:
    return record.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
