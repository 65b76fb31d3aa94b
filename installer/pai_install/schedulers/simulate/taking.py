"""Which jobs go so that another one starts: as few as are needed, in the order that the scheduler has. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from pai_install.schedulers.simulate.model import ClusterNow, RunningJob
from pai_install.schedulers.simulate.place import Free, without

Jobs = Sequence[RunningJob]


def fewest(
    candidates: Iterable[RunningJob], may: Callable[[RunningJob, Jobs], bool], fits: Callable[[Jobs], bool]
) -> list[RunningJob] | None:
    """may: whether a job may be taken after others were. fits: whether these are enough. None: all are not enough."""
    taken: list[RunningJob] = []
    for job in candidates:
        if may(job, taken):
            taken.append(job)
            if fits(taken):
                break
    else:
        return None
    for job in taken[-2::-1]:
        spared = [it for it in taken if it is not job]
        if fits(spared) and all(may(it, spared[:number]) for number, it in enumerate(spared)):
            taken = spared
    return taken


def freed(snapshot: ClusterNow, free: Free, victims: Jobs) -> Free:
    """What is free once these are gone; machines that take no pods still take none."""
    away = {it.name for it in snapshot.machines if it.away}
    for job in victims:
        free = without(free, job.on, away=away)
    return free


def gives(job: RunningJob) -> dict[str, float]:
    """Resource -> what a job gives back."""
    found: defaultdict[str, float] = defaultdict(float)
    for (_, resource), amount in job.uses.items():
        found[resource] += amount
    return dict(found)
