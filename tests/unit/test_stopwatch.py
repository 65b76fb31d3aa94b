from __future__ import annotations

import pytest

from tests.stopwatch import Stopwatch, grown, waited_s

PRESSURE = """some avg10=0.13 avg60=1.09 avg300=11.16 total=18348915112
full avg10=0.00 avg60=0.00 avg300=0.00 total=0
"""


def test_the_time_in_which_tasks_waited() -> None:
    assert waited_s(PRESSURE) == pytest.approx(18348.915112)


@pytest.mark.parametrize(("waited", "limit"), [(0, 2), (1, 3), (4, 6), (9, 6)])
def test_a_limit_grows_with_the_share_of_waiting(waited: float, limit: float) -> None:
    assert grown(2, 4, waited) == limit


def test_a_kernel_that_counts_nothing_gives_the_largest_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((100.0, 100.0, 105.0, 105.0))
    monkeypatch.setattr("tests.stopwatch._pressure", lambda: "")
    monkeypatch.setattr("tests.stopwatch.time.monotonic", lambda: next(times))
    assert Stopwatch().within(2)


def test_what_takes_long_is_outside_of_each_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((100.0, 107.0))
    monkeypatch.setattr("tests.stopwatch._pressure", lambda: PRESSURE)
    monkeypatch.setattr("tests.stopwatch.time.monotonic", lambda: next(times))
    assert not Stopwatch().within(2)
