"""Fixtures of this room."""

from __future__ import annotations

import pytest

from tests.unit.runs import Kit


@pytest.fixture
def kit() -> Kit:
    """What the tests build runs from."""
    return Kit()
