"""Pieces of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

BEGIN, END = "<!-- generated: begin (make docs; a test compares) -->", "<!-- generated: end -->"
NOTE = "<!-- Made by `make docs` from the code; a test compares. -->"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yields the lines of a table; cells may hold any one-line text."""
    yield _row(head)
    yield "|" + "---|" * len(head)
    for row in rows:
        yield _row(row)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def page(title: str, lines: Iterable[str]) -> str:
    """A page that is made as a whole."""
    return "\n".join([f"# {title}", "", NOTE, "", *lines]).rstrip() + "\n"


def with_generated(text: str, *parts: Iterable[str]) -> str:
    """The page `text` with what stands between its marks made anew, one part of lines for each pair of marks.

    Raises ValueError when the page has not that many marks.
    """
    made, rest = "", text
    for lines in parts:
        head, begin, rest = rest.partition(BEGIN)
        _, end, rest = rest.partition(END)
        if not (begin and end):
            raise ValueError("the page has no marks for a generated part")
        made += f"{head}{BEGIN}\n" + "\n".join(lines) + f"\n{END}"
    return made + rest
