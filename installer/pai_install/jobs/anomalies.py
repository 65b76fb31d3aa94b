"""Jobs that an administrator should look at, and why; as OpenPAI's list of abnormal jobs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from pai_install.jobs.gpu_utilization import FIRST_S, all_quiet, is_fresh
from pai_install.jobs.pod_status import Instance
from pai_install.jobs.state import JobState
from pai_install.site.use_limits import UseLimits
from pai_install.system.words import plural

_Found = tuple[float, str]


def abnormal(jobs: Iterable[JobState], now: datetime, limits: Callable[[str], UseLimits]) -> tuple[JobState, ...]:
    """Those that have their machines for long or for nothing, with that said of them, the longest first.

    limits: those of a virtual cluster. What is not known is not said.
    """
    found = [(reasons, job) for job in jobs if (reasons := list(_reasons(job, now.timestamp(), limits(job.cluster))))]
    found.sort(key=lambda one: max(lasts for lasts, _ in one[0]), reverse=True)
    return tuple(replace(job, abnormal="; ".join(_words(job, reasons))) for reasons, job in found)


def unknown(jobs: Iterable[JobState], now: datetime) -> tuple[str, ...]:
    """Names of the jobs that run on GPUs of which no one knows how busy they are, and someone should by now."""
    return tuple(
        job.name
        for job in jobs
        if job.state == "RUNNING" and any(_is_unknown(one, now.timestamp()) for one in job.holders)
    )


def _is_unknown(pod: Instance, now: float) -> bool:
    if pod.use is not None:
        return not is_fresh(pod.use, now)
    # A pod in its first minutes has no measurement yet, which is normal.
    return all(abs(now - start) > FIRST_S for start in _moments([pod.started]))


def _words(job: JobState, reasons: list[_Found]) -> Iterator[str]:
    yield from (message for _, message in reasons)
    if job.warned:
        yield "it was warned"


def _reasons(job: JobState, now: float, limits: UseLimits) -> Iterator[_Found]:
    if job.state != "RUNNING":
        return
    gpus = sum(len(role.holders) * role.gpus for role in job.roles)
    starts = list(_moments(one.started for one in job.instances if one.state == "RUNNING"))
    if starts and (lasts := now - min(starts)) > limits.long.after_s:
        yield lasts, f"runs for {duration(lasts)}" + (f" and holds {plural(gpus, 'GPU')}" if gpus else "")
    limit = limits.notebook if job.notebook else limits.idle
    found = all_quiet((one.use for one in job.holders), limit.busy_below, now, notebook=job.notebook)
    if found is not None and found.lasts_s >= limit.after_s:
        prefix = "no one uses this job: " if job.notebook else ""
        most = f"{found.most} % at most"
        yield (
            found.lasts_s,
            f"{prefix}{plural(gpus, 'GPU')} under {limit.busy_below} % busy for {duration(found.lasts_s)}, {most}",
        )


def _moments(words: Iterable[str]) -> Iterator[float]:
    for word in words:
        try:
            found = datetime.fromisoformat(word)
        except ValueError:
            continue
        if found.tzinfo is not None:
            yield found.timestamp()


def duration(lasts_s: float) -> str:
    """How long, in the largest unit of which there are two."""
    minutes = int(lasts_s // 60)
    for size, unit in ((1440, "day"), (60, "hour")):
        if minutes >= 2 * size:
            return plural(minutes // size, unit)
    return plural(minutes, "minute")
