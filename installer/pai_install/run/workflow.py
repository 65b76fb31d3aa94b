"""Workflows: work of several runs, in stages. They resume, wait for machines, and roll back.

A workflow has no file of its own: its `WorkflowStore` derives the progress from existing state of the site, for example
from the identity of the registries. So a killed process leaves no trace, and the next one resumes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pai_install.errors import ExitCode

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class StageStarted:
    """A stage begins, or is resumed. name: identifies it. title: one line for a person."""

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class StageFinished:
    """A stage is done and verified."""

    name: str


@dataclass(frozen=True, slots=True)
class RollbackStarted:
    """A stage is rolled back."""

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class MachinesMissing:
    """The workflow waits: the stage must not begin before these machines have the stage before it."""

    name: str
    machines: tuple[str, ...]


WorkflowEvent = StageStarted | StageFinished | RollbackStarted | MachinesMissing


class StageStopped(Exception):  # noqa: N818 - no error: the same command resumes the stage
    """A stage ended early and changed nothing that must be rolled back."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class StageFailed(StageStopped):
    """A stage cannot succeed: the workflow rolls back."""


@dataclass(frozen=True, slots=True)
class WorkflowStage(Generic[State]):
    """One stage. `run` may be killed anywhere and then restarts from its beginning.

    done: the state is past the stage, including `verify`. run: returns the exit code of its last run, and raises
    StageStopped or StageFailed. verify: the same, after `run`. undo: reverts the changes of `run`, if any, and raises
    StageStopped. requires_all_machines: each machine must have completed the previous stage.
    """

    name: str
    title: str
    done: Callable[[State], bool]
    run: Callable[[], int]
    verify: Callable[[], int] | None = None
    undo: Callable[[], None] | None = None
    requires_all_machines: bool = False


class WorkflowStore(Generic[State]):
    """The persistent state of a workflow. Rollback is persistent where the last three methods say so."""

    @abstractmethod
    def read(self) -> State:
        """The state now."""

    def is_rolling_back(self) -> bool:
        """Whether an earlier process began to roll back."""
        return False

    def start_rollback(self) -> None:
        """Called before the first stage is undone."""

    def finish_rollback(self) -> None:
        """Called after the last stage is undone. Raises StageStopped."""


def never_done(_state: Any) -> bool:  # noqa: ANN401 - of any workflow
    """For stages that show only while they run whether something is left to do."""
    return False


def all_machines_answer() -> tuple[str, ...]:
    """For workflows in which no machine can be missing."""
    return ()


@dataclass(frozen=True, slots=True)
class Workflow(Generic[State]):
    """Stages in their order. missing_machines: machines without the completed stages."""

    stages: tuple[WorkflowStage[State], ...]
    store: WorkflowStore[State]
    notify: Callable[[WorkflowEvent], None]
    missing_machines: Callable[[], tuple[str, ...]] = all_machines_answer

    def advance(self) -> int:
        """Runs every stage that is left. Returns the first exit code that is not OK."""
        # A killed rollback goes on, because half of the stages are undone already.
        if self.store.is_rolling_back():
            return self._roll_back(self.stages, ExitCode.VERIFICATION_FAILED)
        codes: list[int] = []
        for number, stage in enumerate(self.stages, start=1):
            # Each stage changes the state, so it is read before each.
            if stage.done(self.store.read()):
                continue
            if stage.requires_all_machines and (missing := self.missing_machines()):
                self.notify(MachinesMissing(stage.name, missing))
                return ExitCode.UNREACHABLE
            self.notify(StageStarted(stage.name, stage.title))
            try:
                codes += [stage.run(), *([stage.verify()] if stage.verify is not None else [])]
            except StageFailed as failure:
                return self._roll_back(self.stages[:number], failure.exit_code)
            except StageStopped as stop:
                return stop.exit_code
            self.notify(StageFinished(stage.name))
        return next((code for code in codes if code), ExitCode.OK)

    def _roll_back(self, stages: tuple[WorkflowStage[State], ...], code: int) -> int:
        """Undoes the stages, the last one first. Returns `code`, or that of an undo which ended early."""
        self.store.start_rollback()
        try:
            for stage in reversed(stages):
                if stage.undo is not None:
                    self.notify(RollbackStarted(stage.name, stage.title))
                    stage.undo()
            self.store.finish_rollback()
        except StageStopped as stop:
            return stop.exit_code
        return code
