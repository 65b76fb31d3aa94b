"""Malformed files of a site with the problems that they give: tests/golden/site/invalid, one file per topic.

A case is `== NAME FILE`, the text of FILE, `-- problems`, and the problems. `pytest --update-snapshots` rewrites the
problems.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden" / "site"
HEAD = re.compile(r"^== (\S+) (\S+)$", re.MULTILINE)
PROBLEMS = "-- problems\n"


@dataclass(frozen=True)
class Case:
    """One malformed file.

    file: its name in a site. text: its content. problems: lines as `lines_of` writes them.
    """

    topic: Path
    name: str
    file: str
    text: str
    problems: tuple[str, ...]


def cases() -> list[Case]:
    """All cases in the order of their files."""
    return [case for topic in sorted((GOLDEN / "invalid").glob("*.txt")) for case in _cases_of(topic)]


def _cases_of(topic: Path) -> list[Case]:
    _, *parts = HEAD.split(topic.read_text(encoding="utf-8"))
    found = []
    for name, file, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        text, _, problems = body.removeprefix("\n").partition(PROBLEMS)
        found.append(Case(topic, name, file, text, tuple(problems.rstrip().splitlines())))
    return found


def update(case: Case, problems: Sequence[str]) -> None:
    """Writes the problems of one case into its file."""
    text = case.topic.read_text(encoding="utf-8")
    before, head, rest = text.partition(f"== {case.name} {case.file}\n{case.text}{PROBLEMS}")
    following = HEAD.search(rest)
    after = f"\n{rest[following.start() :]}" if following else ""
    lines = "".join(f"{line}\n" for line in problems)
    case.topic.write_text(f"{before}{head}{lines}{after}", encoding="utf-8")
