"""docs/security.md claims what tests show: each test that its table names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
NAMED = sorted(set(re.findall(r"`(test_\w+)`", PAGE)))


@pytest.fixture(scope="module")
def defined() -> set[str]:
    """Every test function."""
    return {
        name for path in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }


def test_the_table_names_tests() -> None:
    assert len(NAMED) > 10


@pytest.mark.parametrize("name", NAMED)
def test_every_attack_of_the_table_is_tried(name: str, defined: set[str]) -> None:
    assert any(found.startswith(name) for found in defined)
