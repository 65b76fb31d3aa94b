"""Jobs that an administrator should look at, and why; as OpenPAI's list of abnormal jobs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from pai_install.jobs.state import JobState
from pai_install.system.words import plural

# as OpenPAI has it
LONG_DAYS = 5


def abnormal(jobs: Iterable[JobState], now: datetime, days: float = LONG_DAYS) -> tuple[JobState, ...]:
    """Those that run for more days, with that said of them, the longest first."""
    found = [(lasts, job) for job in jobs if (lasts := _lasts(job, now)) is not None and lasts > timedelta(days=days)]
    found.sort(key=lambda one: one[0], reverse=True)
    return tuple(replace(job, abnormal=_words(job, lasts)) for lasts, job in found)


def _lasts(job: JobState, now: datetime) -> timedelta | None:
    """How long it runs; None for one that does not. What it waited does not count, nor what it ran before it waited."""
    if job.state != "RUNNING":
        return None
    starts = list(_moments(one.started for one in job.instances if one.state == "RUNNING"))
    return now - min(starts) if starts else None


def _moments(words: Iterable[str]) -> Iterator[datetime]:
    for word in words:
        try:
            found = datetime.fromisoformat(word)
        except ValueError:
            continue
        if found.tzinfo is not None:
            yield found


def _words(job: JobState, lasts: timedelta) -> str:
    gpus = sum(len(role.instances) * role.gpus for role in job.roles)
    return f"runs for {plural(lasts.days, 'day')}" + (f" and holds {plural(gpus, 'GPU')}" if gpus else "")
