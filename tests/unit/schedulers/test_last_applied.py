"""What a cluster was given last is read back as it was."""

from __future__ import annotations

import pytest
from hypothesis import given

from pai_install.schedulers.last_applied import kept_object, kept_of
from pai_install.scheduling.model import Scheduling
from tests.unit.scheduling.sites import divided_sites
from tests.virtual_clusters import CASES


@given(divided_sites())
def test_read_back_as_it_was(scheduling: Scheduling) -> None:
    assert kept_of(kept_object(scheduling)) == scheduling


@pytest.mark.parametrize("case", CASES)
def test_read_back_with_levels_and_machines(case: str) -> None:
    assert kept_of(kept_object(CASES[case]())) == CASES[case]()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"backend": "x"}', '{"backend": "kueue", "supply": 1}', "null"])
def test_what_is_not_understood_is_nothing(text: str) -> None:
    assert kept_of({"data": {"virtual-clusters.json": text}}) is None


def test_nothing_is_nothing() -> None:
    assert kept_of(None) is None
    assert kept_of({"data": None}) is None
