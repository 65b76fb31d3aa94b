"""How busy GPUs were, as conditions of pods say it: here as the recorder reads it, so that both say the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import job_recorder.limits
import job_recorder.use
from gpu_use.steps import MINUTE_S, begin, plain
from pai_install.jobs import gpu_utilization as use
from pai_install.site.use_limits import USE_CONDITION

START = 1_790_000_000
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, START) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["at", "gpu", "cpu"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def pod(told: Any) -> dict[str, Any]:
    message = told if isinstance(told, str) else json.dumps(told)
    return {"status": {"conditions": [{"type": USE_CONDITION, "status": "True", "message": message}]}}


def both(told: Any) -> use.PodUse | None:
    """What is read, which is what the recorder reads."""
    found, theirs = use.use_of(pod(told)), job_recorder.use.use_of(pod(told))
    assert (found is None) == (theirs is None)
    if found is not None and theirs is not None:
        assert (found.at, found.gpus, found.gpu, found.cpu) == (theirs.at, theirs.gpus, theirs.gpu, theirs.cpu)
    return found


@given(st.lists(st.none() | st.floats(0, 100), min_size=1, max_size=40), st.integers(1, 50))
def test_both_read_what_is_measured(levels: list[float | None], below: int) -> None:
    steps = begin(START)
    for number, level in enumerate(levels, 1):
        steps = steps.then(START + number * MINUTE_S, level)
    told = {"version": 1, "at": steps.at, "gpus": 2, "gpu": plain(steps), "cpu": plain(steps)}
    found, theirs = both(told), job_recorder.use.use_of(pod(told))
    assert found is not None
    assert theirs is not None
    for mine, other in (
        (use.all_quiet([found], below, steps.at), job_recorder.use.idle(theirs, below)),
        (use.all_quiet([found], below, steps.at, notebook=True), job_recorder.use.unused(theirs, below)),
    ):
        assert mine is not None
        assert other is not None
        assert (mine.since, mine.most) == (other.since, other.most)


@given(JSON | st.fixed_dictionaries({"version": st.just(1), "at": JSON, "gpus": JSON, "gpu": JSON, "cpu": JSON}))
def test_both_refuse_the_same(told: Any) -> None:
    both(told)


@pytest.mark.parametrize(
    "told", ["", "{", [], {"version": 2}, {"version": 1, "at": 5, "gpus": 0, "gpu": [], "cpu": []}]
)
def test_what_cannot_be_read_is_not_known(told: Any) -> None:
    assert both(told) is None


def test_a_condition_that_does_not_hold_says_nothing() -> None:
    (row,) = pod({"version": 1})["status"]["conditions"]
    assert use.use_of({"status": {"conditions": [{**row, "status": "Unknown"}]}}) is None
    assert use.use_of({"status": {}}) is None


def test_both_have_the_same_limits() -> None:
    assert use.STALE_S == job_recorder.limits.STALE_S
    assert use._WORKS == job_recorder.use._WORKS


def quiet(at: int, since: int) -> use.PodUse:
    return use.PodUse(at, 1, ((since, 100), (at, 2)), ((since, 100), (at, 2)))


def test_of_a_job_the_busiest_and_the_oldest_count() -> None:
    found = use.all_quiet([quiet(START, START - 600), quiet(START - 60, START - 300)], 10, START)
    assert found == use.Quiet(START - 300, 2, START - 60)
    assert found.lasts_s == 240
    assert use.all_quiet([quiet(START, START - 600), None], 10, START) is None
    assert use.all_quiet([quiet(START - 301, START - 600)], 10, START) is None
    assert use.all_quiet([], 10, START) is None
