"""How busy a pod's GPUs were, as its machine tells in a condition of the pod (roles/gpu_use measures it). Pure.

Steps are pairs of an end and a level in percent, the oldest first: until that end there was a minute of that level, and
after it none as busy. The recorder on the control planes reads the same; a test compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from pai_install.kube.objects import JsonObject, child, number, rows, text
from pai_install.site.use_limits import USE_CONDITION

_VERSION = 1
# percent of one processor below which no one works in a notebook
_WORKS = 5
# seconds: what was measured longer ago, or ends later than now, is not known
STALE_S = 300
# seconds in which a machine first tells of a pod: the rest of a minute, one whole where no sample was left in that, and
# the time that telling takes
FIRST_S = 120
_MOST_LEVEL = 100
Steps = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class PodUse:
    """at: seconds since 1970 until when it is known. gpu, cpu: steps."""

    at: int
    gpus: int
    gpu: Steps
    cpu: Steps


@dataclass(frozen=True, slots=True)
class Quiet:
    """Since when something was below a limit, and the most that it was since then, in percent; until when is known."""

    since: int
    most: int
    at: int

    @property
    def lasts_s(self) -> int:
        """How long, in seconds."""
        return self.at - self.since


def use_of(pod: JsonObject) -> PodUse | None:
    """What the pod's machine tells; None where it tells nothing that can be read."""
    for row in rows(child(pod, "status").get("conditions")):
        if row.get("type") == USE_CONDITION and row.get("status") == "True":
            return _read(text(row.get("message")))
    return None


def _read(message: str) -> PodUse | None:
    try:
        told = json.loads(message)
    except ValueError:
        return None
    if not isinstance(told, Mapping) or number(told.get("version")) != _VERSION:
        return None
    at, gpus = number(told.get("at")), number(told.get("gpus"))
    if at is None or gpus is None or gpus < 1:
        return None
    gpu, cpu = _steps(told.get("gpu"), at), _steps(told.get("cpu"), at)
    return PodUse(at, gpus, gpu, cpu) if gpu is not None and cpu is not None else None


def _steps(found: object, at: int) -> Steps | None:
    if not isinstance(found, list) or not found:
        return None
    steps: list[tuple[int, int]] = []
    for row in found:
        end, level = (number(row[0]), number(row[1])) if isinstance(row, list) and len(row) == 2 else (None, None)
        if end is None or level is None or not (0 <= end <= at and 0 <= level <= _MOST_LEVEL):
            return None
        steps.append((end, level))
    falls = all(one[0] < two[0] and one[1] > two[1] for one, two in pairwise(steps))
    return tuple(steps) if falls else None


def quiet(steps: Steps, below: int, at: int) -> Quiet | None:
    """Since when it is; None where nothing says since when."""
    before = [end for end, level in steps if level >= below]
    return Quiet(max(before), max((level for _, level in steps if level < below), default=0), at) if before else None


def all_quiet(uses: Iterable[PodUse | None], below: int, now: float, *, notebook: bool = False) -> Quiet | None:
    """Since when all pods of a job are, of a notebook also their processors; None where one of them is not known."""
    found = [_of_pod(use, below, notebook=notebook) if use is not None and is_fresh(use, now) else None for use in uses]
    known = [one for one in found if one is not None]
    if not known or len(known) < len(found):
        return None
    return Quiet(max(one.since for one in known), max(one.most for one in known), min(one.at for one in known))


def is_fresh(use: PodUse, now: float) -> bool:
    """Whether it says how it is now."""
    return abs(now - use.at) <= STALE_S


def _of_pod(use: PodUse, below: int, *, notebook: bool) -> Quiet | None:
    gpu = quiet(use.gpu, below, use.at)
    if gpu is None or not notebook:
        return gpu
    cpu = quiet(use.cpu, _WORKS, use.at)
    return Quiet(max(gpu.since, cpu.since), gpu.most, use.at) if cpu is not None else None
