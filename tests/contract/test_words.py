"""Words that this project once made up, and the field's own in their place: docs/glossary.md has the rest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("playbooks", "roles", "inventories")
OUTSIDE = {"molecule"}
KINDS = {".py", ".yml", ".md", ".j2"}
# pattern -> what to write
INSTEAD = {
    r"(?i)patience": "timeout",
    r"left behind": "the managed state, or leftovers",
    r"any more\b": "no longer",
    r"brought back|bring back": "restore",
    r"cannot be told": "cannot be read",
    r"\banew\b": "again, or restart",
    r"\bnobody\b|\bsomebody\b": "no one, or the one who is meant",
    r"without asking who": "anonymous",
    r"Keep what": "Record",
    r"put right\b": "revert, repair",
    r"for good\b": "permanently",
    r"at its end\b": "expired",
    r"is no file\b": "is not a file",
}


def lines() -> list[tuple[str, str]]:
    """Path:line and text, of all that runs on machines and its pages, without the roles' scenarios."""
    found = []
    for path in (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))):
        if path.suffix in KINDS and not OUTSIDE & set(path.parts):
            for number, text in enumerate(path.read_text().splitlines(), start=1):
                found.append((f"{path.relative_to(ROOT)}:{number}", text))
    return found


LINES = lines()


@pytest.mark.parametrize("pattern", INSTEAD)
def test_words_do_not_come_back(pattern: str) -> None:
    assert [f"{place}: {text.strip()}" for place, text in LINES if re.search(pattern, text)] == [], INSTEAD[pattern]
