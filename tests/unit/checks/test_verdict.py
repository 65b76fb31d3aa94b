"""One order of gravity."""

from __future__ import annotations

import itertools

import pytest

from pai_install.checks.verdict import GRAVITY, Action, Verdict, costliest, gravest


def test_every_verdict_has_its_place() -> None:
    assert set(GRAVITY) == set(Verdict)
    assert len(GRAVITY) == len(Verdict)


@pytest.mark.parametrize(("graver", "lesser"), list(itertools.combinations(GRAVITY, 2)))
def test_the_earlier_one_of_the_order_wins(graver: Verdict, lesser: Verdict) -> None:
    assert gravest([lesser, graver, lesser]) is graver


def test_nothing_looked_at_is_no_pass() -> None:
    assert gravest([]) is Verdict.SKIP


def test_the_costliest_action() -> None:
    assert costliest([Action.CONFIG, Action.RMA, Action.DRAIN]) is Action.RMA
    assert costliest([]) is Action.NONE
    assert [action.rank for action in Action] == list(range(len(Action)))
