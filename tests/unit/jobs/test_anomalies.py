"""Which jobs an administrator should look at, and what is said of them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.agents.common.utilization import CONDITION
from pai_install.jobs.anomalies import abnormal, duration, unknown
from pai_install.jobs.gpu_utilization import FIRST_S
from pai_install.jobs.state import JobState
from pai_install.site.use_limits import UseLimit, UseLimits
from tests.unit.jobs.test_state import Object, holds, job, pod, stands

START = datetime(2026, 1, 1, tzinfo=UTC)
PODS = (("ps-server", 0), ("ps-server", 1), ("worker-v2", 0), ("worker-v2", 1))
DAYS = timedelta(days=1)
LIMITS = UseLimits(
    UseLimit("idle", 10, 3600, "list", 0),
    UseLimit("long", 0, 5 * 86400, "list", 0),
    UseLimit("notebook", 10, 7200, "list", 0),
)


def since(word: str, role: str, index: int, phase: str = "Running", idle_s: int | None = None) -> Object:
    """idle_s: how long its GPUs are idle an hour after the start; None: no one knows."""
    found = pod(role, index, phase)
    found["status"]["startTime"] = word
    if idle_s is not None:
        at = int(START.timestamp()) + 3600
        steps = [[at - idle_s, 100], [at, 3]]
        told = {"version": 1, "at": at, "gpus": 4, "gpu": steps, "cpu": steps}
        found["status"]["conditions"] = [{"type": CONDITION, "status": "True", "message": json.dumps(told)}]
    return found


def running(*words: str, **more: int | None) -> JobState:
    """Four pods that started at these times; the last one counts for the rest."""
    starts = [*words, *[words[-1]] * (len(PODS) - len(words))]
    return stands(job(), *(since(word, *where, **more) for word, where in zip(starts, PODS, strict=True)))  # type: ignore[arg-type]


def told(*jobs: JobState, after: timedelta, limits: UseLimits = LIMITS) -> list[str]:
    return [one.abnormal for one in abnormal(jobs, START + after, lambda _cluster: limits)]


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


def test_a_gang_runs_since_its_first_pod(snapshot: SnapshotAssertion) -> None:
    assert told(running("2026-01-05T00:00:00Z", "2026-01-01T00:00:00Z"), after=6 * DAYS) == snapshot


def test_what_has_ended_holds_no_gpu(snapshot: SnapshotAssertion) -> None:
    ended = [since("2026-01-01T00:00:00Z", *where, phase="Succeeded" if where[1] else "Running") for where in PODS]
    assert told(stands(job(), *ended), after=6 * DAYS) == snapshot


def test_the_longest_comes_first_and_what_long_is_says_the_site() -> None:
    jobs = (running("2026-01-02T00:00:00Z"), running("2026-01-01T00:00:00Z"))
    shorter = replace(LIMITS, long=replace(LIMITS.long, after_s=86400))
    found = told(*jobs, after=3 * DAYS, limits=shorter)
    assert [says.partition(" and")[0] for says in found] == ["runs for 3 days", "runs for 2 days"]


def test_what_waits_or_has_ended_holds_nothing() -> None:
    long = [since("2026-01-01T00:00:00Z", *where) for where in PODS]
    ended = stands(job(conditions=[holds("Completed")]), *long)
    assert told(stands(job()), ended, after=90 * DAYS) == []


def test_a_start_that_is_unknown_is_not_guessed() -> None:
    for word in ("", "yesterday", "2026-01-01T00:00:00"):
        assert told(running(word), after=90 * DAYS) == []


HOUR = timedelta(hours=1)


def test_what_has_its_gpus_for_nothing(snapshot: SnapshotAssertion) -> None:
    found = running("2026-01-01T00:00:00Z", idle_s=3600)
    assert told(found, after=HOUR) == snapshot
    assert told(replace(found, warned="it will be stopped"), after=HOUR)[0].endswith("at most; it was warned")
    assert told(running("2026-01-01T00:00:00Z", idle_s=3599), after=HOUR) == []


def test_use_that_is_not_known_is_not_idle_and_is_said() -> None:
    known, silent = running("2026-01-01T00:00:00Z", idle_s=3600), running("2026-01-01T00:00:00Z")
    assert told(silent, after=HOUR) == []
    assert told(known, after=HOUR + timedelta(minutes=6)) == []
    assert unknown([known, silent, stands(job())], START + HOUR) == (silent.name,)
    assert unknown([known], START + HOUR + timedelta(minutes=6)) == (known.name,)


@pytest.mark.parametrize("seconds", [0, 60, FIRST_S])
def test_of_a_job_in_its_first_minutes_nothing_can_be_known(seconds: int) -> None:
    assert unknown([running("2026-01-01T00:00:00Z")], START + timedelta(seconds=seconds)) == ()


def test_after_that_it_is_said_of_it_also_where_only_one_pod_is_old() -> None:
    for found in (running("2026-01-01T00:00:00Z"), running(*["2026-01-01T00:02:00Z"] * 3, "2026-01-01T00:00:00Z")):
        assert unknown([found], START + timedelta(seconds=FIRST_S + 1)) == (found.name,)


def test_a_start_that_no_one_knows_or_that_is_far_ahead_excuses_nothing() -> None:
    for word in ("", "yesterday", "2026-01-02T00:00:00Z"):
        assert len(unknown([running(word)], START)) == 1


def test_a_machine_that_no_longer_tells_of_a_new_pod_excuses_nothing() -> None:
    assert len(unknown([running("2026-01-01T01:06:00Z", idle_s=60)], START + HOUR + timedelta(minutes=6))) == 1


def test_pods_that_hold_no_gpu_need_not_be_known() -> None:
    starts = [since("2026-01-01T00:00:00Z", *where, idle_s=None if "ps" in where[0] else 3600) for where in PODS]
    assert len(told(stands(job(), *starts), after=HOUR)) == 1


def test_a_notebook_that_nobody_uses(snapshot: SnapshotAssertion) -> None:
    found = replace(running("2026-01-01T00:00:00Z", idle_s=3600), notebook=True)
    assert told(found, after=HOUR) == []
    found = replace(running("2026-01-01T00:00:00Z", idle_s=7200), notebook=True)
    assert told(found, after=HOUR) == snapshot


@pytest.mark.parametrize(
    ("seconds", "says"), [(60, "1 minute"), (7199, "119 minutes"), (7200, "2 hours"), (172800, "2 days")]
)
def test_how_long(seconds: int, says: str) -> None:
    assert duration(seconds) == says
