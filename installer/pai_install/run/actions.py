"""Runs one step of a plan by its kind of action, and gives a result per host."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from pai_install.checks.finding import Finding
from pai_install.cluster.client import ClusterClient
from pai_install.engine.base import Engine, Event, EventKind, RunRequest
from pai_install.errors import PaiError
from pai_install.plan.model import ClusterCall, ClusterCalls, LocalWork, Step
from pai_install.redact import Redactor
from pai_install.report.model import Counts, Failure, HostResult, HostStatus, PhaseResult, TaskRecord
from pai_install.report.notices import HostFinished, Notice, Observer, TaskFinished, TaskStarted, Waiting
from pai_install.run.cluster_calls import make_call
from pai_install.run.host_results import HostResults


@dataclass(frozen=True, slots=True)
class Stage:
    """The environment of a step.

    keep: receives every raw event including secrets, for facts only, never for output.
    """

    engine: Engine
    observers: Sequence[Observer] = ()
    redactor: Redactor = field(default_factory=lambda: Redactor(()))
    clock: Callable[[], float] = time.monotonic
    keep: Callable[[Event], None] | None = None

    def notify(self, notice: Notice) -> None:
        """Passes a notice to every observer."""
        for observer in self.observers:
            observer.notice(notice)


# Work on the controller host: takes the step's hosts and arguments, returns findings. Raises PaiError on failure.
LocalWorker = Callable[[Sequence[str], Mapping[str, Any]], Sequence[Finding]]


@dataclass(frozen=True, slots=True)
class StepEnd:
    """The end of a step: `interrupted` by the user, stopped by a `problem` of the engine, or complete."""

    result: PhaseResult
    findings: tuple[Finding, ...] = ()
    interrupted: bool = False
    problem: PaiError | None = None


def run_playbook(step: Step, request: RunRequest, stage: Stage) -> StepEnd:
    """Runs the playbook on the hosts in `request.limit`. A Ctrl-C ends it and is reported, not raised."""
    collected = HostResults(request.limit, stage.redactor)
    began = stage.clock()
    interrupted, problem = False, None
    try:
        _consume(step, request, stage, collected)
    except KeyboardInterrupt:
        interrupted = True
    except PaiError as error:
        problem = error
    # A stream that broke off has no counts of Ansible. Hosts without a failure then count as interrupted.
    hosts = collected.results(complete=not interrupted and problem is None)
    return StepEnd(_ended(step, hosts, began, stage), tuple(collected.findings), interrupted, problem)


def run_calls(step: Step, action: ClusterCalls, hosts: Sequence[str], stage: Stage, cluster: ClusterClient) -> StepEnd:
    """Makes the calls of each host in turn. A failed call ends the work of its host."""
    began = stage.clock()
    results: dict[str, HostResult] = {}
    interruption, stopped = HostResult(HostStatus.INTERRUPTED), False
    for host in hosts:
        calls = [call for call in action.calls if call.host == host]
        try:
            results[host] = interruption if stopped else _turn(step, host, calls, stage, cluster)
        except KeyboardInterrupt:
            stopped, results[host] = True, interruption
    return StepEnd(_ended(step, results, began, stage), interrupted=stopped)


def run_local(
    step: Step, action: LocalWork, hosts: Sequence[str], stage: Stage, workers: Mapping[str, LocalWorker]
) -> StepEnd:
    """Does the work for all hosts at once."""
    began = stage.clock()
    result, problem = HostResult(HostStatus.OK), None
    findings: tuple[Finding, ...] = ()
    try:
        findings = tuple(workers[action.name](hosts, action.arguments))
    except KeyboardInterrupt:
        result = HostResult(HostStatus.INTERRUPTED)
    except PaiError as error:  # what was done before must still be reported
        problem, result = error, HostResult(HostStatus.LEFT, why=stage.redactor.text(error.message))
    # The work has no result for a single host, so all hosts have the same one.
    ended = _ended(step, dict.fromkeys(hosts, result), began, stage)
    return StepEnd(ended, findings, result.status is HostStatus.INTERRUPTED, problem)


def _turn(step: Step, host: str, calls: Sequence[ClusterCall], stage: Stage, cluster: ClusterClient) -> HostResult:
    counts = Counts()
    changes: list[TaskRecord] = []
    for call in calls:
        began = stage.clock()
        stage.notify(TaskStarted(step.name, call.title))
        try:
            result = make_call(cluster, call, lambda line: stage.notify(Waiting(step.name, stage.redactor.text(line))))
        except PaiError as error:
            message, evidence = stage.redactor.text(error.message), stage.redactor.text(error.details)
            stage.notify(_called(step, call, "failed", stage.clock() - began, evidence or message))
            failure = Failure(host, call.title, message=message, evidence=evidence, remedy=error.remedy)
            return HostResult(HostStatus.FAILED, counts + Counts(failed=1, tasks=1), failure, tuple(changes))
        took = round(stage.clock() - began, 3)
        stage.notify(_called(step, call, "changed", took, stage.redactor.text(result)))
        counts += Counts(ok=1, changed=1, tasks=1)
        changes.append(TaskRecord(call.title, "", took))
    return HostResult(HostStatus.CHANGED, counts, changes=tuple(changes))


def _called(step: Step, call: ClusterCall, outcome: str, took: float, message: str) -> TaskFinished:
    return TaskFinished(step.name, call.host, call.title, "", outcome, round(took, 3), {"msg": message})


def _ended(step: Step, hosts: Mapping[str, HostResult], began: float, stage: Stage) -> PhaseResult:
    for host, result in hosts.items():
        stage.notify(HostFinished(step.name, host, result.status))
    return PhaseResult(step.name, step.title, round(stage.clock() - began, 3), dict(hosts))


def _consume(step: Step, request: RunRequest, stage: Stage, collected: HostResults) -> None:
    # The engine ends Ansible when its generator closes, also if an observer raises.
    with closing(stage.engine.run(request)) as events:
        for event in events:
            collected.add(event)
            if stage.keep is not None:
                stage.keep(event)
            if event.kind is EventKind.TASK_START:
                stage.notify(TaskStarted(step.name, stage.redactor.text(event.task)))
            elif event.host:
                stage.notify(_finished(step, event, stage.redactor))


def _finished(step: Step, event: Event, redactor: Redactor) -> TaskFinished:
    return TaskFinished(
        phase=step.name,
        host=event.host,
        task=redactor.text(event.task),
        task_path=event.task_path,
        outcome=event.kind.value,
        duration_s=round(event.duration_s, 3),
        result=redactor.mapping(event.result),
    )


def failure_of_step(title: str, problem: PaiError, redactor: Redactor) -> Failure:
    """The report of a step that Ansible could not run at all."""
    return Failure(
        host="",
        task=title,
        message=redactor.text(problem.message),
        evidence=redactor.text(problem.details),
        remedy=problem.remedy,
    )
