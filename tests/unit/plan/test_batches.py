"""Batches cover every machine once, are never wider than asked, and the first bad one is the last."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_install.errors import ExitCode
from pai_install.plan.batches import batches, one_after_another, width
from pai_install.report.model import HostStatus
from tests.errors import raises
from tests.unit.runs import Kit, done, event, phase

NAMES = st.lists(st.text("abc123", min_size=1, max_size=4), max_size=40)


@pytest.mark.parametrize(
    ("text", "total", "expected"),
    [("1", 10, 1), ("3", 10, 3), ("30", 10, 10), ("10%", 1000, 100), ("10%", 5, 1), ("100%", 7, 7), ("25%", 7, 1)],
)
def test_width(text: str, total: int, expected: int) -> None:
    assert width(text, total) == expected


@pytest.mark.parametrize("text", ["", "0", "-1", "101%", "0%", "1.5", "all", "1 %", "9999999"])
def test_a_width_that_is_none(text: str) -> None:
    with raises("max-unavailable-invalid") as caught:
        width(text, 10)
    assert caught.value.exit_code is ExitCode.USAGE


@given(NAMES, st.integers(1, 50))
def test_every_machine_is_in_one_batch(names: list[str], size: int) -> None:
    found = batches(names, size)
    assert [name for batch in found for name in batch] == list(dict.fromkeys(names))
    assert all(1 <= len(batch) <= size for batch in found)
    assert all(len(batch) == size for batch in found[:-1])


@given(st.integers(1, 1000), st.integers(1, 100))
def test_a_percentage_never_takes_more_than_its_share_but_one(total: int, percent: int) -> None:
    assert 1 <= width(f"{percent}%", total) <= max(1, total * percent // 100)


def test_each_group_waits_for_the_whole_of_the_one_before() -> None:
    groups = [[phase("drain 1", "one"), phase("work 1", "one")], [], [phase("drain 2", "two")]]
    steps = one_after_another(groups)
    assert [(step.name, step.after_all) for step in steps] == [
        ("drain 1", ()),
        ("work 1", ()),
        ("drain 2", ("drain 1", "work 1")),
    ]


@pytest.mark.parametrize(("bad", "second"), [(False, HostStatus.CHANGED), (True, HostStatus.LEFT)])
def test_the_first_bad_batch_is_the_last(bad: bool, second: HostStatus) -> None:
    kit: Any = Kit()
    first = done(event("failed", "one", msg="no"), event("changed", "master"), failures=["one"], rc=2)
    engine = kit.engine(
        {"a.yml": first if bad else kit.fine("one", "master"), "b.yml": kit.fine("two")},
    )
    plan = kit.plan(*one_after_another([[phase("a", "one", "master")], [phase("b", "two")]]))
    outcome = kit.run(plan, engine, [])
    assert outcome.phases[1].hosts["two"].status is second
    if bad:
        assert outcome.phases[1].hosts["two"].why == "step a did not succeed on one"
    assert not any(request.check for request in engine.requests)


def test_check_mode_shows_every_batch() -> None:
    kit: Any = Kit()
    failing = done(event("failed", "one", msg="not there yet"), failures=["one"], rc=2)
    engine = kit.engine({"a.yml": failing, "b.yml": kit.fine("two")})
    kit.run(kit.plan(*one_after_another([[phase("a", "one")], [phase("b", "two")]])), engine, [], check=True)
    assert [request.playbook for request in engine.requests] == ["a.yml", "b.yml"]
