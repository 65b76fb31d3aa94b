"""Runs a plan step by step. A failed host never stops the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pai_install.checks.finding import Finding
from pai_install.cluster.client import ClusterClient
from pai_install.engine.base import Engine, RunRequest
from pai_install.plan.model import ClusterCalls, LocalWork, Plan, Playbook, Step
from pai_install.report.model import Failure, HostResult, HostStatus, Outcome, PhaseResult
from pai_install.report.notices import Observer, PhaseFinished, PhaseStarted, RunFinished, RunStarted
from pai_install.run.actions import (
    LocalWorker,
    Stage,
    StepEnd,
    failure_of_step,
    run_calls,
    run_local,
    run_playbook,
)


@dataclass(frozen=True, slots=True)
class Means:
    """The means to run steps. cluster and local: None and empty where no step of the plan needs them."""

    engine: Engine
    cluster: ClusterClient | None = None
    local: Mapping[str, LocalWorker] = field(default_factory=dict)


def execute(
    plan: Plan,
    means: Means,
    observers: Sequence[Observer],
    *,
    check: bool = False,
    before: Sequence[PhaseResult] = (),
    findings: Sequence[Finding] = (),
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Runs the plan and returns its Outcome, also after a Ctrl-C, which is not raised.

    check: changes nothing on the machines. A failed task then removes no host, because it may depend on an earlier
    step's change. before: earlier read-only phases (observation and preflight), so that the outcome counts their tasks
    and lists unreachable and refused hosts. findings: known before the run.
    """
    stage = Stage(means.engine, tuple(observers), plan.redactor, clock)
    run = _Run(plan, means, stage, check=check, findings=list(findings))
    run.begin_after(before)
    return run.all_steps()


@dataclass
class _Run:
    """One execution: completed steps, and removed hosts with the reason.

    stopped: why no further step may start, or "".
    """

    plan: Plan
    means: Means
    stage: Stage
    check: bool
    phases: list[PhaseResult] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    stopped: str = ""
    looking_s: float = 0.0

    def begin_after(self, before: Sequence[PhaseResult]) -> None:
        """Leaves out the hosts that did not answer or were refused."""
        self.phases.extend(before)
        self.looking_s = sum(phase.duration_s for phase in before)
        self.dropped.update({host: f"not reached: {why}" for host, why in self.plan.unreachable.items()})
        refused = {
            host: f"refused: {result.why}"
            for phase in before
            for host, result in phase.hosts.items()
            if result.status is HostStatus.REFUSED
        }
        self.dropped.update(refused)

    def all_steps(self) -> Outcome:
        began = self.stage.clock()
        planned = tuple((step.name, step.names) for step in self.plan.steps)
        self.stage.notify(RunStarted(planned, check=self.check, operation=self.plan.operation))
        for number, step in enumerate(self.plan.steps, start=1):
            self._step(number, step)
        outcome = Outcome(
            duration_s=round(self.stage.clock() - began + self.looking_s, 3),
            phases=tuple(self.phases),
            findings=tuple(self.findings),
            interrupted=self.interrupted,
            check=self.check,
        )
        self.stage.notify(RunFinished(outcome))
        return outcome

    def _step(self, number: int, step: Step) -> None:
        blocked = self._blocked(step)
        hosts = tuple(host for host in step.names if host not in self.dropped)
        if blocked or not hosts:
            self._finish(step, {}, blocked=blocked)
            return
        self.stage.notify(PhaseStarted(step.name, step.title, hosts, number, len(self.plan.steps), step.subject))
        self._take(step, self._run(step, hosts))

    def _run(self, step: Step, hosts: tuple[str, ...]) -> StepEnd:
        match step.action:
            case Playbook(playbook=playbook, variables=variables):
                extra = {**variables, **_roles(step)}
                request = RunRequest(playbook, self.plan.inventory, limit=hosts, check=self.check, extra_vars=extra)
                return run_playbook(step, request, self.stage)
            case ClusterCalls() as calls:
                assert self.means.cluster is not None  # noqa: S101 - the environment has one
                return run_calls(step, calls, hosts, self.stage, self.means.cluster)
            case LocalWork() as work:
                return run_local(step, work, hosts, self.stage, self.means.local)

    def _take(self, step: Step, end: StepEnd) -> None:
        failure = failure_of_step(step.title, end.problem, self.stage.redactor) if end.problem else None
        if end.interrupted:
            self.interrupted, self.stopped = True, "the run was interrupted"
        elif failure is not None and not self.stopped:
            # A failure of Ansible as a whole says nothing about single hosts, so no later step can build on it.
            self.stopped = (
                "Ansible itself failed in an earlier step"
                if isinstance(step.action, Playbook)
                else f"{step.title} failed"
            )
        self.findings.extend(end.findings)
        self._finish(step, end.result.hosts, duration_s=end.result.duration_s, failure=failure)
        for host, result in end.result.hosts.items():
            if result.status is HostStatus.UNREACHABLE or not (self.check or result.status.good):
                self.dropped.setdefault(host, f"{result.status.value} in step {step.name}")

    def _finish(
        self,
        step: Step,
        ran: Mapping[str, HostResult],
        *,
        duration_s: float = 0.0,
        failure: Failure | None = None,
        blocked: str = "",
    ) -> None:
        left = {
            host: HostResult(HostStatus.LEFT, why=self.dropped.get(host) or blocked)
            for host in step.names
            if host not in ran
        }
        undo = step.undo_command([host for host, result in ran.items() if result.changes])
        result = PhaseResult(step.name, step.title, duration_s, {**ran, **left}, failure, undo)
        self.phases.append(result)
        self.stage.notify(PhaseFinished(result))

    def _blocked(self, step: Step) -> str:
        """Returns why the step may not start, or ""."""
        if self.stopped:
            return self.stopped
        for done in self.phases:
            # One machine is enough for `needs`: a host that drops out never stops the others.
            if done.name in step.needs and not self.check and not _succeeded_somewhere(done):
                return f"step {done.name} succeeded on no machine"
            # Batches use `after_all`: the first bad machine must be the last one.
            if done.name in step.after_all and not self.check and (bad := _failed_on(done)):
                return f"step {done.name} did not succeed on {', '.join(bad)}"
        return ""


def _succeeded_somewhere(done: PhaseResult) -> bool:
    """Whether a step did its work on at least one of the machines that it had work on."""
    return any(result.status.good for result in done.hosts.values())


def _failed_on(done: PhaseResult) -> list[str]:
    """The machines on which a step did not do its work."""
    return [host for host, result in done.hosts.items() if not result.status.good]


def _roles(step: Step) -> dict[str, dict[str, list[str]]]:
    """Returns the variable with the roles that have work on each machine. Without it, a playbook runs all roles."""
    chosen = {one.host: list(one.roles) for one in step.hosts if one.roles}
    return {"pai_roles": chosen} if chosen else {}
