"""Prints a file with marks under the lines that have problems. Secrets in it are masked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from pai_install.site.document import Document
from pai_install.site.problem import Problem, printable

_SECRET_LINE = re.compile(
    r"""^(?P<indent>[\s-]*)(?P<key>["']?[\w.-]*(?:pass|pwd|secret|token|_key|-key|htpasswd|credential)[\w.-]*["']?\s*:\s*)"""
    r"""(?P<value>\S.*)$""",
    re.IGNORECASE,
)


def annotate(document: Document) -> Iterator[str]:
    """Yields the file's lines, numbered, each followed by its problems."""
    by_line: dict[int, list[Problem]] = defaultdict(list)
    for problem in document.problems:
        by_line[problem.line].append(problem)
    yield document.file
    width = len(str(len(document.lines)))
    for number, line in enumerate(_masked(document.lines), start=1):
        yield f"{number:>{width}} | {printable(line.expandtabs(4))}".rstrip()
        for problem in by_line.pop(number, []):
            yield from _mark(problem, " " * width)
    for problems in by_line.values():  # a place behind the last line, or a file that could not be read
        for problem in problems:
            yield from _mark(problem, " " * width)


def _mark(problem: Problem, margin: str) -> Iterator[str]:
    indent = " " * min(problem.column - 1, 80)
    yield f"{margin} | {indent}^ {problem.severity}: {problem.message}"
    if problem.remedy:
        yield f"{margin} | {indent}  {problem.remedy}"


def _masked(lines: Sequence[str]) -> Iterator[str]:
    """Yields the lines with the values of secret keys, also those that go on below, replaced by stars."""
    hide_below: int | None = None
    for line in lines:
        depth = len(line) - len(line.lstrip())
        if hide_below is not None and (not line.strip() or depth > hide_below):
            yield " " * depth + ("********" if line.strip() else "")
            continue
        hide_below = None
        match = _SECRET_LINE.match(line)
        if match is None:
            yield line
            continue
        hide_below = len(match["indent"])
        yield f"{match['indent']}{match['key']}********"
