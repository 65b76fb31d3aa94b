"""docs/security.md claims what tests show: each test that its tables name is there, under this name in one file."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "security.md").read_text()
# a test, with its file where several have a test of the name
CITED = re.compile(r"`((?:[\w/]+\.py::)?test_\w+)`")


def defined() -> Counter[str]:
    """How often there is each test, with and without its file."""
    found: Counter[str] = Counter()
    for path in TESTS.rglob("test_*.py"):
        names = set(re.findall(r"^\s*(?:async )?def (test_\w+)\(", path.read_text(), re.MULTILINE))
        found.update(names)
        found.update(f"{path.relative_to(TESTS).as_posix()}::{name}" for name in names)
    return found


def wrong(page: str, tests: Counter[str]) -> list[str]:
    """The cited names that are not exactly one test, or that a row repeats."""
    rows = [CITED.findall(line) for line in page.splitlines()]
    return [name for row in rows for name, count in Counter(row).items() if count > 1 or tests[name] != 1]


def test_the_table_names_tests() -> None:
    assert len(set(CITED.findall(PAGE))) > 10


def test_every_attack_of_the_table_is_tried() -> None:
    assert wrong(PAGE, defined()) == []


@pytest.mark.parametrize(
    "row", ["`test_on`", "`test_two`", "`test_one`, `test_one`", "`a/test_b.py::test_one`", "`a/test_a.py::test_tw`"]
)
def test_a_wrong_name_is_found(row: str) -> None:
    tests = Counter({"test_one": 1, "test_two": 2, "a/test_a.py::test_one": 1, "a/test_a.py::test_two": 1})
    assert wrong(f"| x | {row} |", tests)
    assert wrong("| x | `test_one`, `a/test_a.py::test_two` |", tests) == []
