"""A table of text for people. Pure."""

from __future__ import annotations

from collections.abc import Iterable


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """Columns of equal width."""
    lines = list(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n" for line in lines
    )
