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


def with_generated(text: str, lines: Iterable[str]) -> str:
    """The page `text` with what stands between its marks made anew. Raises ValueError when it has no marks."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ValueError("the page has no marks for the generated part")
    return f"{head}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{tail}"
