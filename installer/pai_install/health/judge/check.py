"""What a check is: its text and a function over what it looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pai_install.health.judge.fleet import Fleet
from pai_install.health.judge.gpu_view import GpuView
from pai_install.health.judge.view import MachineView
from pai_install.health.model import CheckText, Judgement

GpuJudge = Callable[[GpuView, MachineView], Judgement]
MachineJudge = Callable[[MachineView], Judgement | Iterable[Judgement]]
FleetJudge = Callable[[Fleet], Iterable[tuple[str, Judgement]]]


@dataclass(frozen=True, slots=True)
class GpuCheck:
    """A check of every GPU."""

    text: CheckText
    judge: GpuJudge


@dataclass(frozen=True, slots=True)
class MachineCheck:
    """A check of every machine; `gpus_only` when it means nothing on a machine without GPUs."""

    text: CheckText
    judge: MachineJudge
    gpus_only: bool = False


@dataclass(frozen=True, slots=True)
class FleetCheck:
    """A check over all machines: yields (machine, judgement)."""

    text: CheckText
    judge: FleetJudge
