"""Minutes in few numbers: nothing busy is forgotten, and nothing unknown passes for idle."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_install.agents.common.utilization import (
    BUSY,
    CEILING,
    CONDITION,
    LATE_S,
    MINUTE_S,
    Quiet,
    Series,
    Work,
    condition,
    idle,
    unknown_until,
    unused,
    utilization_of,
)

START = 1_790_000_000
LEVELS = st.one_of(st.none(), st.floats(0, 100))


def pod(row: object) -> dict[str, object]:
    return {"status": {"conditions": [row]}}


def message(text: object) -> dict[str, object]:
    return pod({"type": CONDITION, "status": "True", "message": text})


def quiet_since(steps: Series, below: int) -> int:
    """As whoever reads them has it."""
    return max(end for end, level in steps.steps if level >= below)


@given(st.lists(LEVELS, max_size=60), st.integers(1, CEILING))
def test_it_is_quiet_since_the_last_minute_that_was_not(levels: list[float | None], below: int) -> None:
    steps = unknown_until(START)
    for number, level in enumerate(levels, 1):
        steps = steps.then(START + number * MINUTE_S, level)
    loud = [number for number, level in enumerate(levels, 1) if level is None or level >= below]
    assert quiet_since(steps, below) == START + (loud[-1] * MINUTE_S if loud else 0)
    assert steps.at == START + len(levels) * MINUTE_S


@given(st.lists(st.tuples(st.integers(-7200, 7200), LEVELS), max_size=40))
def test_steps_are_few_and_whatever_clocks_do_they_can_be_read(minutes: list[tuple[int, float | None]]) -> None:
    steps, at = unknown_until(START), START
    for passed, level in minutes:
        at = max(at + passed, 0) + MINUTE_S
        steps = steps.then(at, level)
    assert len(steps.steps) <= CEILING + 1
    assert all(one[0] < two[0] and one[1] > two[1] for one, two in pairwise(steps.steps))
    assert steps.steps[0][1] == BUSY
    found = utilization_of(pod(condition(steps, steps, 2, Work(), "")))
    assert found is not None
    assert (found.at, found.gpus, found.gpu, found.cpu) == (steps.at, 2, steps.steps, steps.steps)


@pytest.mark.parametrize("passed", [-3600, 0, LATE_S + 1, 86400])
def test_what_was_before_a_gap_or_a_set_clock_is_not_known(passed: int) -> None:
    steps = unknown_until(START).then(START + 60, 0).then(START + 120, 0)
    after = steps.then(steps.at + passed, 0)
    assert quiet_since(after, 10) == after.at - MINUTE_S


def test_a_minute_that_is_a_little_late_is_none() -> None:
    steps = unknown_until(START).then(START + 60, 0).then(START + 60 + LATE_S, 0)
    assert quiet_since(steps, 10) == START


@pytest.mark.parametrize(
    ("at", "rows"),
    [
        (START, None),
        (START, []),
        (START, [[START, 100], [START, 3]]),
        (START, [[START - 60, 3], [START, 3]]),
        (START, [[START + 60, 100]]),
        (START, [[START, 101]]),
        (START, [[START, -1]]),
        (START, [[START]]),
        (START, ["x"]),
        (START, [[START, True]]),
        (START, [[START, 1.5]]),
        ("now", [[START, 100]]),
        (None, [[START, 100]]),
    ],
)
def test_what_cannot_be_steps_is_not_read(at: object, rows: object) -> None:
    for name in ("gpu", "cpu"):
        steps = {"gpu": [[START, 100]], "cpu": [[START, 100]], name: rows}
        assert utilization_of(message(json.dumps({"version": 1, "at": at, "gpus": 1, **steps}))) is None


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"version": 2}', '{"version": 1}', '{"version": 1, "at": 5, "gpus": 0, "gpu": [], "cpu": []}', 7],
)
def test_unreadable_condition(text: object) -> None:
    assert utilization_of(message(text)) is None


def test_condition_that_does_not_hold() -> None:
    series = unknown_until(START)
    assert utilization_of(pod({**condition(series, series, 1, Work(), ""), "status": "Unknown"})) is None
    assert utilization_of({"status": {"conditions": "none"}}) is None


def test_notebook_is_unused_when_processors_are_idle_too() -> None:
    gpu, cpu = (unknown_until(START).then(START + 60, level) for level in (3, 40))
    found = utilization_of(pod(condition(gpu, cpu, 1, Work(5, 9), "")))
    assert found is not None
    assert found.work == Work(5, 9)
    assert idle(found, 10) == Quiet(START, 3)
    assert unused(found, 10) == Quiet(START + 60, 3)


@pytest.mark.parametrize("work", [None, [], [5], [-1, 9], [9, 5], ["5", 9], [5, 9, 9], {"busy": 1}])
def test_work_of_an_older_meter_or_a_strange_one_is_unknown(work: object) -> None:
    body = {"version": 1, "at": START, "gpus": 1, "gpu": [[START, 100]], "cpu": [[START, 100]], "work": work}
    found = utilization_of(message(json.dumps(body)))
    assert found is not None
    assert found.work is None
