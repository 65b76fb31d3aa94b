"""Utilization of a job's GPUs over all of its pods, from conditions that the GPU meter writes. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pai_install.agents.common import utilization
from pai_install.agents.common.utilization import STALE_S, Utilization

# seconds in which a machine first tells of a pod: the rest of a minute, one whole where no sample was left in that, and
# the time that telling takes
FIRST_S = 120


@dataclass(frozen=True, slots=True)
class Quiet:
    """Since when it was below a limit, and the highest level since then, in percent. at: until when that is known."""

    since: int
    most: int
    at: int

    @property
    def lasts_s(self) -> int:
        """Its length in seconds."""
        return self.at - self.since


@dataclass(frozen=True, slots=True)
class JobUtilization:
    """How busy the GPUs of a job are now.

    level: percent in the last minute, of the busiest pod; 100 for CEILING and more. idle: since when all are below the
    limit. average: percent since the start, None where a meter does not tell.
    """

    level: int
    idle: Quiet | None
    average: int | None


def utilization_of_job(uses: Iterable[Utilization | None], below: int, now: float) -> JobUtilization | None:
    """The utilization of a job's pods, None where one of them is not known. below: limit of an idle GPU, in percent."""
    found = list(uses)
    known = [use for use in found if use is not None and is_fresh(use, now)]
    if not known or len(known) < len(found):
        return None
    works = [use.work for use in known if use.work is not None]
    measured = sum(work.measured_ms for work in works) if len(works) == len(known) else 0
    average = round(100 * sum(work.busy_ms for work in works) / measured) if measured else None
    idle = all_quiet(known, below, now)
    return JobUtilization(max(use.gpu[-1][1] for use in known), idle if idle and idle.lasts_s > 0 else None, average)


def all_quiet(uses: Iterable[Utilization | None], below: int, now: float, *, notebook: bool = False) -> Quiet | None:
    """Since when all pods of a job are, of a notebook also their processors; None where one of them is not known."""
    found = [_of_pod(use, below, notebook=notebook) if use is not None and is_fresh(use, now) else None for use in uses]
    known = [one for one in found if one is not None]
    if not known or len(known) < len(found):
        return None
    return Quiet(max(one.since for one in known), max(one.most for one in known), min(one.at for one in known))


def is_fresh(use: Utilization, now: float) -> bool:
    """Whether it says how it is now."""
    return abs(now - use.at) <= STALE_S


def _of_pod(use: Utilization, below: int, *, notebook: bool) -> Quiet | None:
    found = (utilization.unused if notebook else utilization.idle)(use, below)
    return Quiet(found.since, found.most, use.at) if found is not None else None
