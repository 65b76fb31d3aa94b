"""What the self-test tries, and what was seen of it, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol

Rank = Literal["low", "high"]

# marks every object of the test; the second is its run
OURS = "pai-install/probe=scheduler"
RUN = "pai-install/run"
# whose pod it is, by the name of a gang
GANG = "pai-install/gang"
# begins the names of its queues and classes
PREFIX = "pai-self-test"
# Begins those of its namespaces: they are to the scheduler what users' are, and those that begin with pai- are not.
PLACES = "scheduler-self-test"
# begins the names of the devices that only the test knows; one kind for each property, so that none meets another
RESOURCE = "pai-install/self-test"
CORES = "cpu"


def is_place(namespace: str) -> bool:
    """Whether a namespace is one of the self-test."""
    return namespace.startswith(f"{PLACES}-")


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of a scenario. units: guaranteed. most: units that it may hold with what it borrows."""

    name: str
    units: int
    most: int


@dataclass(frozen=True, slots=True)
class Gang:
    """A job whose pods need each other, one unit each. tasks: pods of each of its roles.

    seconds: how long its pods run; 0: until they are told to end. queued: False: a bare pod as the system has them.
    """

    name: str
    queue: str
    tasks: tuple[int, ...]
    rank: Rank = "low"
    seconds: int = 0
    queued: bool = True

    @property
    def size(self) -> int:
        """All its pods."""
        return sum(self.tasks)


class GangState(StrEnum):
    """What a step waits for of a gang.

    WHOLE: all pods run. DONE: it has ended well. HOLDS: some pod has a place. GONE: none has. RENEWED: all pods run
    and the one that the step removed is not among them.
    """

    WHOLE = "whole"
    DONE = "done"
    HOLDS = "holds"
    GONE = "gone"
    RENEWED = "renewed"


@dataclass(frozen=True, slots=True)
class Violation:
    """What was seen against a limit. value: with its numbers. expected: the limit. unseen: nothing shows either."""

    message: str
    value: str = ""
    expected: str = ""
    unseen: bool = False


class StepLimit(Protocol):
    """What must not be seen during a step."""

    def violation(self, samples: Sequence[Sample], gangs: Mapping[str, Gang]) -> Violation | None:
        """The first thing seen against the limit. gangs: of the scenario."""


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """One step of a scenario: what is done, then what is waited for, and what it proves.

    starts, ends: gangs that are created, that are deleted. loses: a gang of which one pod is deleted.
    wants: gang -> its expected state; empty: the step watches for within_s seconds. missed: what it means if the
    expected state does not come; empty: the step only prepares, and nothing is proven. due_s: seconds in which it has
    to come; 0: within_s. limits: what must not be seen meanwhile. proves: checks that end with this step, where that
    is not the last one of the scenario.
    """

    name: str
    starts: tuple[Gang, ...] = ()
    ends: tuple[str, ...] = ()
    loses: str = ""
    wants: Mapping[str, GangState] = field(default_factory=dict)
    within_s: float = 60.0
    missed: str = ""
    due_s: float = 0.0
    limits: tuple[StepLimit, ...] = ()
    proves: str = ""

    @property
    def is_preparation(self) -> bool:
        """Whether the step proves nothing by itself."""
        return not self.missed if self.wants else not self.limits


@dataclass(frozen=True, slots=True)
class Scenario:
    """A small play that shows properties of the scheduler.

    name: one word, which ends the names of what is made for it. checks: what it shows. capacity: units that the
    machines have, all together; 0: those that they have anyway. topology: whether its pods are given their places
    before they start. disruptive: it is played while the scheduler is stopped.
    """

    name: str
    checks: tuple[str, ...]
    queues: tuple[Queue, ...]
    steps: tuple[ScenarioStep, ...]
    capacity: int = 4
    resource: str = ""
    unit: str = "1"
    topology: bool = True
    disruptive: bool = False

    @property
    def namespace(self) -> str:
        """Where its pods are."""
        return f"{PLACES}-{self.name}"

    @property
    def title(self) -> str:
        """Begins the names of its objects that are in no namespace."""
        return f"{PREFIX}-{self.name}"

    @property
    def gangs(self) -> Mapping[str, Gang]:
        """Every gang by its name."""
        return {gang.name: gang for step in self.steps for gang in step.starts}


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """A pod as it was seen. id: never given again. node: empty while it has no place. ending: told to end."""

    id: str
    name: str
    node: str
    phase: str
    ending: bool = False

    @property
    def holds(self) -> bool:
        """Whether it has a place and its devices, and is to keep them."""
        return bool(self.node) and self.phase in ("Pending", "Running") and not self.ending

    @property
    def runs(self) -> bool:
        """Whether its container runs."""
        return self.phase == "Running" and not self.ending


@dataclass(frozen=True, slots=True)
class ObservedGang:
    """A gang as it was seen. done: its job has ended well. why: what its pods say of why they wait."""

    pods: tuple[ObservedPod, ...] = ()
    done: bool = False
    why: str = ""

    @property
    def held(self) -> int:
        """Units that it holds."""
        return sum(pod.holds for pod in self.pods)

    @property
    def running(self) -> int:
        """Pods that run."""
        return sum(pod.runs for pod in self.pods)

    @property
    def ended(self) -> int:
        """Pods that ended well."""
        return sum(pod.phase == "Succeeded" for pod in self.pods)


NOTHING = ObservedGang()


@dataclass(frozen=True, slots=True)
class Sample:
    """Every gang of a scenario at one moment. at_s: seconds since the test began."""

    at_s: float
    gangs: Mapping[str, ObservedGang]

    def of(self, gang: str) -> ObservedGang:
        """One gang."""
        return self.gangs.get(gang, NOTHING)


@dataclass(frozen=True, slots=True)
class StepMark:
    """When a step was. met_s: when all that it wants had come; None: it has not. why: what the scheduler said then."""

    name: str
    began_s: float
    met_s: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Recording:
    """What was seen of a scenario. refused: what the API said where it did not take the objects."""

    scenario: str
    samples: tuple[Sample, ...] = ()
    marks: tuple[StepMark, ...] = ()
    refused: str = ""

    def mark(self, step: str) -> StepMark | None:
        """A step that began; None: the scenario did not come to it."""
        return next((mark for mark in self.marks if mark.name == step), None)

    def during(self, step: str) -> tuple[Sample, ...]:
        """What was seen from the beginning of a step to that of the next."""
        names = [mark.name for mark in self.marks]
        if step not in names:
            return ()
        place = names.index(step)
        begins = self.marks[place].began_s
        ends = self.marks[place + 1].began_s if place + 1 < len(names) else float("inf")
        return tuple(sample for sample in self.samples if begins < sample.at_s <= ends)

    @property
    def missed(self) -> str:
        """The step that did not come to its end; empty where all did."""
        return next((mark.name for mark in self.marks if mark.met_s is None), "")
