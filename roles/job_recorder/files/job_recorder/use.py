"""How busy a pod's GPUs were, as its machine tells in a condition of the pod (roles/gpu_use measures it). Pure.

Steps are pairs of an end and a level in percent, the oldest first: until that end there was a minute of that level, and
after it none as busy. What the machine does not know it tells as busy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from job_recorder.shapes import ENDED_PHASES, Json, child, is_going, rows, seconds, text

CONDITION, VERSION = "pai-install/use", 1
# percent of one processor below which no one works in a notebook: its server alone needs about 1
_WORKS = 5
_OURS = ("nvidia.com/", "hivedscheduler.microsoft.com/pod-scheduling-enable")
_MOST_LEVEL = 100
Steps = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Use:
    """at: seconds since 1970 until when it is known. gpu, cpu: steps."""

    at: int
    gpus: int
    gpu: Steps
    cpu: Steps


@dataclass(frozen=True)
class Quiet:
    """Since when something was below a limit, and the most that it was since then, in percent."""

    since: int
    most: int


@dataclass(frozen=True)
class Holder:
    """A pod that may hold NVIDIA devices. use: None where no one knows. started: 0 before it runs."""

    job: tuple[str, ...]
    created: str
    holds: bool
    ended: bool
    runs: bool
    started: float
    use: Use | None


def holder(pod: Json, job: tuple[str, ...]) -> Holder:
    """What of a pod counts here."""
    status = child(pod, "status")
    phase = text(status.get("phase"))
    return Holder(
        job,
        text(child(pod, "metadata").get("creationTimestamp")),
        _holds(pod),
        phase in ENDED_PHASES,
        phase == "Running" and not is_going(pod),
        seconds(text(status.get("startTime"))),
        use_of(pod),
    )


def _holds(pod: Json) -> bool:
    containers = rows(child(pod, "spec").get("containers"))
    asked = {name for row in containers for name in child(row, "resources", "limits")}
    return any(name.startswith(_OURS) for name in asked)


def use_of(pod: Json) -> Use | None:
    """What its machine tells; None where it tells nothing that can be read."""
    for row in rows(child(pod, "status").get("conditions")):
        if row.get("type") == CONDITION and row.get("status") == "True":
            return _read(text(row.get("message")))
    return None


def _read(message: str) -> Use | None:
    try:
        told = json.loads(message)
    except ValueError:
        return None
    if not isinstance(told, Mapping) or told.get("version") != VERSION:
        return None
    at, gpus = _count(told.get("at")), _count(told.get("gpus"))
    if at is None or not gpus:
        return None
    gpu, cpu = _steps(told.get("gpu"), at), _steps(told.get("cpu"), at)
    return Use(at, gpus, gpu, cpu) if gpu is not None and cpu is not None else None


def _steps(found: object, at: int) -> Steps | None:
    if not isinstance(found, list) or not found:
        return None
    steps: list[tuple[int, int]] = []
    for row in found:
        end, level = (_count(row[0]), _count(row[1])) if isinstance(row, list) and len(row) == 2 else (None, None)
        if end is None or level is None or end > at or level > _MOST_LEVEL:
            return None
        if steps and not (end > steps[-1][0] and level < steps[-1][1]):
            return None
        steps.append((end, level))
    return tuple(steps)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def quiet(steps: Steps, below: int) -> Quiet | None:
    """Since when it is; None where nothing says since when: its first step is one already."""
    before = [end for end, level in steps if level >= below]
    if not before:
        return None
    return Quiet(max(before), max((level for _, level in steps if level < below), default=0))


def idle(use: Use, below: int) -> Quiet | None:
    """Since when its GPUs do nothing."""
    return quiet(use.gpu, below)


def unused(use: Use, below: int) -> Quiet | None:
    """Since when no one uses a notebook: neither its GPUs nor its processors do anything."""
    gpu, cpu = quiet(use.gpu, below), quiet(use.cpu, _WORKS)
    return Quiet(max(gpu.since, cpu.since), gpu.most) if gpu is not None and cpu is not None else None
