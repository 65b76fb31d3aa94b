"""Utilization of a whole job."""

from __future__ import annotations

from dataclasses import replace

from pai_install.agents.common.utilization import Utilization, Work
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


def test_of_a_job_the_level_and_the_average() -> None:
    busy = Utilization(START, 1, ((START - 60, 100), (START, 33)), ((START, 100),), Work(60, 100))
    quieter = Utilization(START, 1, ((START - 60, 100), (START, 2)), ((START, 100),), Work(0, 100))
    assert use.utilization_of_job([busy, quieter], 10, START) == use.JobUtilization(33, None, 30)
    assert use.utilization_of_job([quieter], 10, START) == use.JobUtilization(2, use.Quiet(START - 60, 2, START), 0)
    assert use.utilization_of_job([replace(quieter, work=None), busy], 10, START) == use.JobUtilization(33, None, None)
    assert use.utilization_of_job([busy, None], 10, START) is None
    assert use.utilization_of_job([busy], 10, START + 301) is None
    assert use.utilization_of_job([], 10, START) is None
