"""The interface to Ansible: a request goes in, events come out."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from pai_install.plan.model import Inventory


class EventKind(StrEnum):
    """The outcome of one task on one host, or the start of a task."""

    TASK_START = "task_start"
    OK = "ok"
    CHANGED = "changed"
    SKIPPED = "skipped"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    IGNORED = "ignored"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `host` is empty for TASK_START and DONE.

    task: "role : name of the task". task_path: file:line of the task.
    result: the module's own result, censored for no_log tasks. Other results may contain secrets, which every writer
    masks. For DONE it is Ansible's count per host, {"failures": {HOST: N}, "dark": {...}, "rescued": {...}}, or empty.
    action: name of the module. returncode: Ansible's exit status, for DONE only.
    """

    kind: EventKind
    task: str = ""
    task_path: str = ""
    host: str = ""
    duration_s: float = 0.0
    result: Mapping[str, Any] = field(default_factory=dict)
    returncode: int = 0
    action: str = ""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One playbook run. `playbook` is a name below playbooks/. `limit` lists hosts (empty: all).

    forks: number of parallel hosts. 0: the capacity of the controller host (width.py).
    secrets: values to mask in the log, in addition to the inventory's and extra_vars' values with a secret's name.
    """

    playbook: str
    inventory: Inventory
    limit: tuple[str, ...] = ()
    check: bool = False
    forks: int = 0
    extra_vars: Mapping[str, Any] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()


class Engine(Protocol):
    """Runs one playbook at a time."""

    def run(self, request: RunRequest) -> Generator[Event]:
        """Yields events as they occur, DONE last. Closing the generator stops the run cleanly.

        Raises PaiError if the engine cannot start.
        """
        ...
