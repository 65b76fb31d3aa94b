"""Notices during a run, for an Observer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pai_install.report.model import HostStatus, Outcome, PhaseResult


@dataclass(frozen=True, slots=True)
class RunStarted:
    """phases: (name, hosts) of the steps in order. operation: which one this is a run of."""

    phases: tuple[tuple[str, tuple[str, ...]], ...]
    check: bool = False
    operation: str = ""


@dataclass(frozen=True, slots=True)
class PhaseStarted:
    """`hosts` are the current participants. number counts from 1 to `total`. subject: the noun of the hosts."""

    name: str
    title: str
    hosts: tuple[str, ...]
    number: int
    total: int
    subject: str = "machine"


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """Ansible begins a task on the hosts of the phase."""

    phase: str
    task: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A step waits. text: the waiting machine and the reason. Sent again on each change."""

    phase: str
    text: str


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """One task ended on one host. outcome: ok, changed, skipped, ignored, failed or unreachable.

    result: the module's result with secrets masked.
    """

    phase: str
    host: str
    task: str
    task_path: str
    outcome: str
    duration_s: float
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HostFinished:
    """A phase ended for one host, well or not."""

    phase: str
    host: str
    status: HostStatus


@dataclass(frozen=True, slots=True)
class PhaseFinished:
    """A phase ended, or was left out."""

    phase: PhaseResult


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The last notice of a run, including interrupted ones."""

    outcome: Outcome


Notice = RunStarted | PhaseStarted | TaskStarted | Waiting | TaskFinished | HostFinished | PhaseFinished | RunFinished


class Observer(Protocol):
    """Receives the notices in order, in the thread of the run. It must not raise."""

    def notice(self, notice: Notice) -> None:
        """Takes one notice."""
        ...
