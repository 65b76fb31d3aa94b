"""Jobs as a scheduler counts them, and the jobs of users that they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pai_install.app.job_quota import QuotaJob, states_of_seen, visible_jobs
from pai_install.jobs.state import JobState
from pai_install.scheduling.job_kinds import JOB, KINDS
from pai_install.scheduling.usage.model import UnfinishedJob

SET = next(kind for kind in KINDS if kind.name == "JobSet")
TRAIN = JobState(
    SET, "Train", "train", "vision", "vision", "alice", "default", "test", "RUNNING", "", 0, "2026-01-01T00:00:00Z", ()
)
LONGER = replace(TRAIN, label="train-worker", name="longer")
SINGLE = replace(TRAIN, label="single", kind=JOB)


@pytest.mark.parametrize(
    ("name", "job"),
    [
        ("vision/train", TRAIN),
        ("vision/train-worker", LONGER),
        ("vision/train-worker-0", LONGER),
        ("vision/train-ps-0", TRAIN),
        ("vision/vision.train", TRAIN),
        ("vision/vision.train.workers", TRAIN),
        ("vision/trainer", None),
        ("speech/train", None),
        ("vision/single", SINGLE),
        ("vision/single-1", None),
        ("vision/-", None),
        ("", None),
        ("a" * 5000 + "-" * 5000, None),
    ],
)
def test_a_scheduler_names_a_job_a_gang_or_a_part(name: str, job: JobState | None) -> None:
    found = dict(states_of_seen([UnfinishedJob("default", name, waits=False)], [TRAIN, LONGER, SINGLE]))
    assert found.get(name) == job


def test_jobs_of_other_namespaces_are_summed_up() -> None:
    jobs = [
        QuotaJob(UnfinishedJob("default", f"{space}/{number}", waits=False, units=units), None)
        for space in ("vision", "speech")
        for number, units in enumerate(({"nvidia.com/gpu": 4}, {"": 16}))
    ]
    shown, hidden = visible_jobs(jobs, frozenset({"vision"}))
    assert [one.seen.name for one in shown] == ["vision/0", "vision/1"]
    assert [(one.cluster, one.jobs, one.units) for one in hidden] == [("default", 2, 20)]
    assert visible_jobs(jobs, None) == (jobs, [])
