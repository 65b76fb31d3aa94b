"""What the rest of the program knows of Ansible: a request goes in, events come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    """One thing that happened; `host` is empty for TASK_START and DONE.

    task_path: file:line of the task. result: the module's own result (censored for no_log tasks).
    returncode: set on DONE only: Ansible's exit status.
    """

    kind: EventKind
    task: str = ""
    task_path: str = ""
    host: str = ""
    duration_s: float = 0.0
    result: Mapping[str, Any] = field(default_factory=dict)
    returncode: int = 0


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One playbook run. `playbook` is a name below playbooks/; `limit` names hosts (empty: all)."""

    playbook: str
    inventory: Inventory
    limit: tuple[str, ...] = ()
    check: bool = False
    forks: int = 25
    extra_vars: Mapping[str, Any] = field(default_factory=dict)


class Engine(Protocol):
    """Runs one playbook at a time."""

    def run(self, request: RunRequest) -> Iterator[Event]:
        """Yields events as they happen, DONE last; closing the iterator stops the run cleanly.

        Raises PaiError when the engine itself cannot start.
        """
        ...
