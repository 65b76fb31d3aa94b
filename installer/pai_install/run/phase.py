"""Runs one phase: events in, a result per host out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from pai_install.checks.finding import Finding
from pai_install.engine.base import Engine, Event, EventKind, RunRequest
from pai_install.errors import PaiError
from pai_install.plan.model import PlannedPhase
from pai_install.redact import Redactor
from pai_install.report.model import Failure, PhaseResult
from pai_install.report.notices import HostFinished, Notice, Observer, TaskFinished, TaskStarted
from pai_install.run.tally import Tally


@dataclass(frozen=True, slots=True)
class Stage:
    """What every phase of a run needs.

    keep: is given every raw event, secrets and all; for reading facts, never for writing.
    """

    engine: Engine
    observers: Sequence[Observer] = ()
    redactor: Redactor = field(default_factory=lambda: Redactor(()))
    clock: Callable[[], float] = time.monotonic
    keep: Callable[[Event], None] | None = None

    def tell(self, notice: Notice) -> None:
        """Passes a notice to every observer."""
        for observer in self.observers:
            observer.notice(notice)


@dataclass(frozen=True, slots=True)
class PhaseEnd:
    """How a phase ended: `interrupted` by the user, by a `problem` of the engine itself, or on its own."""

    result: PhaseResult
    findings: tuple[Finding, ...] = ()
    interrupted: bool = False
    problem: PaiError | None = None


def run_phase(phase: PlannedPhase, request: RunRequest, stage: Stage) -> PhaseEnd:
    """Runs the phase's playbook on the hosts in `request.limit`; a Ctrl-C ends it and is reported, not raised."""
    tally = Tally(request.limit, stage.redactor)
    began = stage.clock()
    interrupted, problem = False, None
    try:
        _consume(phase, request, stage, tally)
    except KeyboardInterrupt:
        interrupted = True
    except PaiError as error:
        problem = error
    hosts = tally.results(complete=not interrupted and problem is None)
    for host, result in hosts.items():
        stage.tell(HostFinished(phase.name, host, result.status))
    ended = PhaseResult(phase.name, phase.title, round(stage.clock() - began, 3), hosts)
    return PhaseEnd(ended, tuple(tally.findings), interrupted, problem)


def _consume(phase: PlannedPhase, request: RunRequest, stage: Stage, tally: Tally) -> None:
    with closing(stage.engine.run(request)) as events:
        for event in events:
            tally.add(event)
            if stage.keep is not None:
                stage.keep(event)
            if event.kind is EventKind.TASK_START:
                stage.tell(TaskStarted(phase.name, stage.redactor.text(event.task)))
            elif event.host:
                stage.tell(_finished(phase, event, stage.redactor))


def _finished(phase: PlannedPhase, event: Event, redactor: Redactor) -> TaskFinished:
    return TaskFinished(
        phase=phase.name,
        host=event.host,
        task=redactor.text(event.task),
        task_path=event.task_path,
        outcome=event.kind.value,
        duration_s=round(event.duration_s, 3),
        result=redactor.mapping(event.result),
    )


def engine_failure(title: str, problem: PaiError, redactor: Redactor) -> Failure:
    """What is reported when Ansible itself could not run the phase of that title."""
    return Failure(
        host="",
        task=title,
        message=redactor.text(problem.message),
        evidence=redactor.text(problem.details),
        remedy=problem.remedy,
    )
