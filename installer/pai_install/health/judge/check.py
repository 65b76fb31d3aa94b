"""The three kinds of health check, their arguments, and the decorators that declare them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Unpack

from pai_install.checks.check import Check, Words
from pai_install.checks.result import Result
from pai_install.health.judge.fleet import HealthFleet
from pai_install.health.judge.gpu_view import GpuView
from pai_install.health.judge.view import MachineView

GpuJudge = Callable[[GpuView, MachineView], Result]
MachineJudge = Callable[[MachineView], Result | Iterable[Result]]
FleetJudge = Callable[[HealthFleet], Iterable[tuple[str, Result]]]


@dataclass(frozen=True, slots=True)
class GpuCheck(Check[GpuJudge]):
    """A check of every GPU."""

    about: str = "gpu"


@dataclass(frozen=True, slots=True)
class MachineCheck(Check[MachineJudge]):
    """A check of every machine. `gpus_only`: it does not apply to machines without GPUs."""

    gpus_only: bool = False


@dataclass(frozen=True, slots=True)
class FleetCheck(Check[FleetJudge]):
    """A check over all machines: yields (machine, result)."""

    about: str = "fleet"


def gpu_check(**words: Unpack[Words]) -> Callable[[GpuJudge], GpuCheck]:
    """Declares the function below as a check of every GPU."""
    return lambda judge: GpuCheck(judge=judge, **words)


def machine_check(*, gpus_only: bool = False, **words: Unpack[Words]) -> Callable[[MachineJudge], MachineCheck]:
    """Declares the function below as a check of every machine, or only of those with GPUs."""
    return lambda judge: MachineCheck(judge=judge, gpus_only=gpus_only, **words)


def fleet_check(**words: Unpack[Words]) -> Callable[[FleetJudge], FleetCheck]:
    """Declares the function below as a check over all machines."""
    return lambda judge: FleetCheck(judge=judge, **words)
