"""Which jobs an administrator should look at, and what is said of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pai_install.jobs.abnormal import abnormal
from pai_install.jobs.state import JobState
from tests.unit.jobs.test_state import Object, holds, job, pod, stands

START = datetime(2026, 1, 1, tzinfo=UTC)
PODS = (("ps-server", 0), ("ps-server", 1), ("worker-v2", 0), ("worker-v2", 1))


def since(word: str, role: str, index: int, phase: str = "Running") -> Object:
    found = pod(role, index, phase)
    found["status"]["startTime"] = word
    return found


def running(*words: str) -> JobState:
    """Four pods that started at these times; the last one counts for the rest."""
    starts = [*words, *[words[-1]] * (len(PODS) - len(words))]
    return stands(job(), *(since(word, *where) for word, where in zip(starts, PODS, strict=True)))


def told(*jobs: JobState, after: timedelta, days: float = 5) -> list[str]:
    return [one.abnormal for one in abnormal(jobs, START + after, days)]


DAYS = timedelta(days=1)


@pytest.mark.parametrize(
    ("after", "says"),
    [
        (5 * DAYS, []),
        (6 * DAYS, ["runs for 6 days and holds 8 GPUs"]),
        (400 * DAYS, ["runs for 400 days and holds 8 GPUs"]),
    ],
)
def test_what_runs_for_long(after: timedelta, says: list[str]) -> None:
    assert told(running("2026-01-01T00:00:00Z"), after=after) == says


def test_a_gang_runs_since_its_first_pod() -> None:
    assert told(running("2026-01-05T00:00:00Z", "2026-01-01T00:00:00Z"), after=6 * DAYS) == [
        "runs for 6 days and holds 8 GPUs"
    ]


def test_the_longest_comes_first_and_days_are_the_callers() -> None:
    jobs = (running("2026-01-02T00:00:00Z"), running("2026-01-01T00:00:00Z"))
    found = told(*jobs, after=3 * DAYS, days=1.5)
    assert [says.partition(" and")[0] for says in found] == ["runs for 3 days", "runs for 2 days"]


def test_what_waits_or_has_ended_holds_nothing() -> None:
    long = [since("2026-01-01T00:00:00Z", *where) for where in PODS]
    ended = stands(job(conditions=[holds("Completed")]), *long)
    assert told(stands(job()), ended, after=90 * DAYS) == []


def test_a_start_that_is_unknown_is_not_guessed() -> None:
    for word in ("", "yesterday", "2026-01-01T00:00:00"):
        assert told(running(word), after=90 * DAYS) == []
