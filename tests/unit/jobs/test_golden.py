"""Each scheduler is given for a job what the kept files say."""

from __future__ import annotations

import pytest

from pai_install.scheduling.model import BACKENDS, Backend
from tests.jobs import CASES, GOLDEN, compiled, expected


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES)
def test_objects(case: str, backend: Backend) -> None:
    assert compiled(case, backend) == expected(case, backend).read_text()


def test_nothing_else_is_kept() -> None:
    assert set(GOLDEN.rglob("*.yml")) == {expected(case, backend) for case in CASES for backend in BACKENDS}
