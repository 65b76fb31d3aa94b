"""docs/security.md claims what tests show: each test that its table names is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
NAMED = sorted(set(re.findall(r"`(test_\w+)`", PAGE)))


def defined() -> set[str]:
    """Every test function."""
    return {
        name for path in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }


def test_the_table_names_tests() -> None:
    assert len(NAMED) > 10


def test_every_attack_of_the_table_is_tried() -> None:
    tests = defined()
    assert [name for name in NAMED if not any(found.startswith(name) for found in tests)] == []
