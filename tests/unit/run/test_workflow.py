"""The workflow engine: killed anywhere it resumes, it rolls back in reverse order, and it waits for machines."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pai_install.errors import ExitCode
from pai_install.run.workflow import (
    MachinesMissing,
    RollbackStarted,
    StageFailed,
    StageFinished,
    StageStarted,
    StageStopped,
    Workflow,
    WorkflowEvent,
    WorkflowStage,
    WorkflowStore,
)

NAMES = ("offer", "use", "retire")


class Killed(BaseException):
    """What a kill -9 is to this process."""


@dataclass
class World(WorkflowStore[frozenset[str]]):
    """What outlives a process: the stages that are done, and whether they are rolled back.

    dies_at: how many actions from now the process is killed. fails, unverified, stops: stages that cannot go on.
    """

    finished: set[str] = field(default_factory=set)
    rolling_back: bool = False
    log: list[str] = field(default_factory=list)
    events: list[WorkflowEvent] = field(default_factory=list)
    missing: tuple[str, ...] = ()
    dies_at: int = -1
    fails: frozenset[str] = frozenset()
    unverified: frozenset[str] = frozenset()
    stops: frozenset[str] = frozenset()

    def act(self, what: str) -> None:
        """Does something that a kill may come before."""
        self.dies_at -= 1
        if self.dies_at == 0:
            raise Killed
        self.log.append(what)

    def read(self) -> frozenset[str]:
        return frozenset(self.finished)

    def is_rolling_back(self) -> bool:
        return self.rolling_back

    def start_rollback(self) -> None:
        self.act("start rollback")
        self.rolling_back = True

    def finish_rollback(self) -> None:
        self.act("finish rollback")
        self.rolling_back = False

    def workflow(self) -> Workflow[frozenset[str]]:
        return Workflow(tuple(map(self.stage, NAMES)), self, self.events.append, lambda: self.missing)

    def stage(self, name: str) -> WorkflowStage[frozenset[str]]:
        def run() -> int:
            self.act(f"run {name}")
            if name in self.stops:
                raise StageStopped(ExitCode.UNREACHABLE)
            if name in self.fails:
                raise StageFailed(ExitCode.STEP_FAILED)
            if name == "retire":
                self.finished.add(name)
            return ExitCode.OK

        def verify() -> int:
            self.act(f"verify {name}")
            if name in self.unverified:
                raise StageFailed(ExitCode.VERIFICATION_FAILED)
            self.finished.add(name)
            return ExitCode.OK

        def undo() -> None:
            self.act(f"undo {name}")
            self.finished.discard(name)

        def done(state: frozenset[str]) -> bool:
            return name in state

        if name == "retire":
            return WorkflowStage(name, name.title(), done, run)
        return WorkflowStage(name, name.title(), done, run, verify, undo, requires_all_machines=name == "use")


def test_stages_run_in_order_and_report() -> None:
    world = World()
    assert world.workflow().advance() == ExitCode.OK
    assert world.log == ["run offer", "verify offer", "run use", "verify use", "run retire"]
    assert world.events[:3] == [StageStarted("offer", "Offer"), StageFinished("offer"), StageStarted("use", "Use")]
    assert world.workflow().advance() == ExitCode.OK
    assert len(world.log) == 5, "nothing is left to do"


@pytest.mark.parametrize("number", range(1, 6))
def test_killed_at_every_stage_it_resumes(number: int) -> None:
    world = World(dies_at=number)
    with pytest.raises(Killed):
        world.workflow().advance()
    done = set(world.finished)
    assert world.workflow().advance() == ExitCode.OK
    assert world.finished == set(NAMES)
    assert not done & {entry.removeprefix("run ") for entry in world.log[number - 1 :]}, (
        "what is verified does not run again"
    )


@pytest.mark.parametrize("cause", ["fails", "unverified"])
def test_what_fails_is_undone_in_reverse_order(cause: str) -> None:
    world = World()
    setattr(world, cause, frozenset({"use"}))
    expected = ExitCode.STEP_FAILED if cause == "fails" else ExitCode.VERIFICATION_FAILED
    assert world.workflow().advance() == expected
    assert world.log[-4:] == ["start rollback", "undo use", "undo offer", "finish rollback"]
    assert [event.name for event in world.events if isinstance(event, RollbackStarted)] == ["use", "offer"]
    assert (world.finished, world.rolling_back) == (set(), False)


@pytest.mark.parametrize("number", range(6, 9))
def test_a_rollback_that_was_killed_is_completed(number: int) -> None:
    world = World(dies_at=number, unverified=frozenset({"use"}))
    with pytest.raises(Killed):
        world.workflow().advance()
    code = world.workflow().advance()
    assert (code, world.finished, world.rolling_back) == (ExitCode.VERIFICATION_FAILED, set(), False)
    world.unverified = frozenset()
    assert world.workflow().advance() == ExitCode.OK


def test_it_waits_while_a_machine_is_missing() -> None:
    world = World(missing=("one", "two"))
    assert world.workflow().advance() == ExitCode.UNREACHABLE
    assert world.events[-1] == MachinesMissing("use", ("one", "two"))
    assert world.finished == {"offer"}, "what keeps the old valid needs no machine"
    world.missing = ()
    assert world.workflow().advance() == ExitCode.OK


def test_a_stage_that_stops_is_not_rolled_back() -> None:
    world = World(stops=frozenset({"use"}))
    assert world.workflow().advance() == ExitCode.UNREACHABLE
    assert world.log[-1] == "run use"
    assert world.finished == {"offer"}
    world.stops = frozenset()
    assert world.workflow().advance() == ExitCode.OK
