"""Plain English, measured: CONTRIBUTING.md has the style sheet."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.prose import GROUPS, Measure, measure, messages, task_names, text_lines

ROOT = Path(__file__).parents[2]
LIMIT = Measure(clauses=5, semicolons=5, long=15)
WRAPPED = ("*.md", "docs/*.md", "docs/contributing/*.md", "docs/decisions/*.md", "roles/*/README.md")
TO_WRAP = {"CHANGELOG.md", "architecture.md", "testing.md"}
TASK_VERBS = (
    *("Install", "Configure", "Enable", "Remove", "Check"),
    *("Apply", "Copy", "Create", "Join", "Observe", "Read", "Record"),
    *("Reload", "Renew", "Restart", "Restore", "Run", "Start", "Stop"),
)
TASK_NAME = re.compile(rf"(\w+ \| )?({'|'.join(TASK_VERBS)}) \S.*")


@pytest.mark.parametrize("group", GROUPS)
def test_group_is_within_its_limit(group: str) -> None:
    found = measure(GROUPS[group]())
    assert not found.exceeds(LIMIT), f"{group}: {found}; see the style sheet in CONTRIBUTING.md"


def test_task_names_begin_with_a_verb_of_the_list_and_are_short() -> None:
    assert [name for name in task_names() if len(name) > 50 or not TASK_NAME.fullmatch(name)] == []


def test_messages_and_remedies_have_no_semicolon() -> None:
    found = list(messages())
    assert len(found) > 1500
    assert [text for text in found if "; " in text] == []


def test_pages_wrap_at_100() -> None:
    assert [
        f"{path.relative_to(ROOT)}: {line}"
        for path in (path for pattern in WRAPPED for path in sorted(ROOT.glob(pattern)) if path.name not in TO_WRAP)
        for line in text_lines(path.read_text(encoding="utf-8"))
        if len(line) > 100 and "](" not in line
    ] == []


def test_changelog_has_one_line_per_change() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    headings = {line for line in lines if line.startswith("### ")}
    assert headings <= {"### Added", "### Changed", "### Fixed", "### Removed", "### Security", "### Deprecated"}
    assert [line for line in lines if line.startswith("- ") and len(line) > 120] == []
    assert [line for line in lines if line.startswith("  ")] == []


def test_measure_counts_sentences_not_code() -> None:
    text = "# What is a heading\n\nYou set what keeps them; nothing else.\n\n- The owner is named here.\n"
    text += "\n```\nwhat the code says; not measured\n```\n"
    assert measure([text]) == Measure(clauses=50, semicolons=50, long=0)
