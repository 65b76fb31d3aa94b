"""Utilization of a whole job."""

from __future__ import annotations

from pai_install.agents.common.utilization import Utilization
from pai_install.jobs import gpu_utilization as use

START = 1_790_000_000


def quiet(at: int, since: int) -> Utilization:
    return Utilization(at, 1, ((since, 100), (at, 2)), ((since, 100), (at, 2)))


def test_of_a_job_the_busiest_and_the_oldest_count() -> None:
    found = use.all_quiet([quiet(START, START - 600), quiet(START - 60, START - 300)], 10, START)
    assert found == use.Quiet(START - 300, 2, START - 60)
    assert found.lasts_s == 240
    assert use.all_quiet([quiet(START, START - 600), None], 10, START) is None
    assert use.all_quiet([quiet(START - 301, START - 600)], 10, START) is None
    assert use.all_quiet([], 10, START) is None
