"""Utilization of a pod's GPUs and processors: the condition that the GPU meter writes and others read. Pure.

A Series is a list of (end, level): until that end there was a minute of that level, and after it none as busy.
So ends rise, levels fall, and the time since which a pod is below any limit can be read from it.
A level that no one knows counts as BUSY, so that no one takes it for idle.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pai_install.agents.common.values import InvalidJsonError, Json, child, number, parse_object, rows, text

# Only the node of a pod and administrators can write this condition.
CONDITION, VERSION = "pai-install/use", 1
# percent; no limit is above CEILING, so higher levels are not told apart
BUSY, CEILING = 100, 50
# seconds: length of a minute, and its maximum length without a gap
MINUTE_S, LATE_S = 60, 90
# seconds after which a measurement is too old, or too far in the future, to be used
STALE_S = 300
# percent of one processor below which a notebook is not in use: its server alone needs about 1
_NOTEBOOK_BUSY = 5
# levels fall from BUSY to 0
_MAX_STEPS = BUSY + 1
_MAX_MESSAGE = 16 * 1024
Steps = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Series:
    """at: seconds since 1970 until which it is known. steps: (end, level), the oldest first."""

    at: int
    steps: Steps

    def then(self, end: int, level: float | None) -> Series:
        """Returns the series with a minute that ended at `end`. level: percent, None for unknown."""
        before = self
        if not self.at < end <= self.at + LATE_S:
            before = unknown_until(end - MINUTE_S)  # there is a gap, or the clock was set
        height = BUSY if level is None or not 0 <= level < CEILING else int(level)
        # A busier minute covers all earlier ones that were less busy, so they tell nothing more.
        kept = tuple(step for step in before.steps if step[1] > height)
        return Series(end, (*kept, (end, height)))

    @property
    def now(self) -> int:
        """The level of the last minute."""
        return self.steps[-1][1]


@dataclass(frozen=True)
class Work:
    """Milliseconds since the pod's first measurement, of all GPUs together: of computing, and of measuring."""

    busy_ms: int = 0
    measured_ms: int = 0

    def plus(self, other: Work) -> Work:
        """Both together."""
        return Work(self.busy_ms + other.busy_ms, self.measured_ms + other.measured_ms)


@dataclass(frozen=True)
class Utilization:
    """at: seconds since 1970 until which it is known. gpus: number of GPUs. work: None from an older meter."""

    at: int
    gpus: int
    gpu: Steps
    cpu: Steps
    work: Work | None = None


@dataclass(frozen=True)
class Quiet:
    """since: when it fell below a limit. most: the highest level after that, in percent."""

    since: int
    most: int


def unknown_until(at: int) -> Series:
    """The series before the first measurement."""
    return Series(at, ((at, BUSY),))


def condition(gpu: Series, cpu: Series, gpus: int, work: Work, timestamp: str) -> dict[str, str]:
    """The condition of a pod. timestamp: the current time in Kubernetes' format."""
    message: dict[str, Any] = {"version": VERSION, "at": gpu.at, "gpus": gpus, "gpu": gpu.steps, "cpu": cpu.steps}
    message["work"] = [work.busy_ms, work.measured_ms]
    return {
        "type": CONDITION,
        "status": "True",
        "reason": "Measured",
        "message": json.dumps(message, separators=(",", ":")),
        "lastProbeTime": timestamp,
        "lastTransitionTime": timestamp,
    }


def utilization_of(pod: Json) -> Utilization | None:
    """Returns the utilization in the pod's condition, or None without a readable one."""
    for row in rows(child(pod, "status").get("conditions")):
        if row.get("type") == CONDITION and row.get("status") == "True":
            return _read(text(row.get("message")))
    return None


def _read(message: str) -> Utilization | None:
    try:
        found: Mapping[str, Any] = parse_object(message, max_size=_MAX_MESSAGE, max_depth=3)
    except InvalidJsonError:
        return None
    at, gpus = number(found.get("at")), number(found.get("gpus"))
    if number(found.get("version")) != VERSION or at is None or not gpus:
        return None
    gpu, cpu = _steps(found.get("gpu"), at), _steps(found.get("cpu"), at)
    return Utilization(at, gpus, gpu, cpu, _work(found.get("work"))) if gpu is not None and cpu is not None else None


def _work(value: object) -> Work | None:
    busy, measured = (
        (number(value[0]), number(value[1])) if isinstance(value, list) and len(value) == 2 else (None, None)
    )
    return Work(busy, measured) if busy is not None and measured is not None and busy <= measured else None


def _steps(value: object, at: int) -> Steps | None:
    if not isinstance(value, list) or not 0 < len(value) <= _MAX_STEPS:
        return None
    steps: list[tuple[int, int]] = []
    for row in value:
        end, level = (number(row[0]), number(row[1])) if isinstance(row, list) and len(row) == 2 else (None, None)
        if end is None or level is None or end > at or level > BUSY:
            return None
        # Only a damaged or forged condition breaks this order. It counts as unknown.
        if steps and not (end > steps[-1][0] and level < steps[-1][1]):
            return None
        steps.append((end, level))
    return tuple(steps)


def quiet(steps: Steps, below: int) -> Quiet | None:
    """Returns the start of the time below the limit, or None if it is before the series."""
    before = [end for end, level in steps if level >= below]
    if not before:
        return None
    return Quiet(max(before), max((level for _, level in steps if level < below), default=0))


def idle(use: Utilization, below: int) -> Quiet | None:
    """The time since which all GPUs are below the limit."""
    return quiet(use.gpu, below)


def unused(use: Utilization, below: int) -> Quiet | None:
    """The time since which a notebook is not in use: neither its GPUs nor its processors do anything."""
    gpu, cpu = quiet(use.gpu, below), quiet(use.cpu, _NOTEBOOK_BUSY)
    return Quiet(max(gpu.since, cpu.since), gpu.most) if gpu is not None and cpu is not None else None
