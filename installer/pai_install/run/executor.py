"""Runs a plan phase by phase; a host that drops out never stops the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pai_install.engine.base import Engine, RunRequest
from pai_install.errors import PaiError
from pai_install.findings import Finding, Verdict, worst
from pai_install.plan.model import Plan, PlannedPhase
from pai_install.redact import Redactor, secret_values
from pai_install.report.model import (
    OBSERVE,
    Counts,
    Failure,
    HostResult,
    HostStatus,
    Outcome,
    PhaseResult,
)
from pai_install.report.notices import Observer, PhaseFinished, PhaseStarted, RunFinished, RunStarted
from pai_install.run.phase import PhaseEnd, Stage, engine_failure, run_phase


@dataclass(frozen=True, slots=True)
class Gate:
    """A look from this box after a phase. check: is given the hosts for which the phase ended well; gives findings."""

    name: str
    title: str
    check: Callable[[Sequence[str]], Sequence[Finding]]


def execute(
    plan: Plan,
    engine: Engine,
    observers: Sequence[Observer],
    *,
    check: bool = False,
    before: Sequence[PhaseResult] = (),
    gates: Mapping[str, Gate] | None = None,
    findings: Sequence[Finding] = (),
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Runs the plan and says what came of it; a Ctrl-C is reported in the Outcome, not raised.

    check: changes nothing on the machines; a failing task then drops no host, since what it misses may be
    what an earlier phase would have made. before: the phases that only looked, the observation that the plan was
    made from and preflight, so that the outcome counts their tasks and names the hosts that did not answer or were
    refused. gates: phase name -> the look after it; a FAIL there holds back the phases that need this one.
    findings: what is known already.
    """
    redactor = Redactor(secret_values(plan.inventory.as_ansible()))
    stage = Stage(engine, tuple(observers), redactor, clock)
    run = _Run(plan, stage, check=check, gates=gates or {}, findings=list(findings))
    run.begin_after(before)
    return run.all_phases()


@dataclass
class _Run:
    """One execution: what has ended so far, and which hosts are out, with the reason."""

    plan: Plan
    stage: Stage
    check: bool
    gates: Mapping[str, Gate]
    phases: list[PhaseResult] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)
    gate_failed: set[str] = field(default_factory=set)
    interrupted: bool = False
    engine_failed: bool = False
    looking_s: float = 0.0
    number: int = 0

    def begin_after(self, before: Sequence[PhaseResult]) -> None:
        """Leaves out the hosts that did not answer or were refused; names the former where no observation does."""
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
        if not before and self.plan.unreachable:
            self.phases.append(unreachable_hosts(self.plan.unreachable))

    @property
    def total(self) -> int:
        """How many phases and gates there are to go through."""
        return len(self.plan.phases) + (0 if self.check else sum(p.name in self.gates for p in self.plan.phases))

    def all_phases(self) -> Outcome:
        began = self.stage.clock()
        planned = tuple((phase.name, _hosts(phase)) for phase in self.plan.phases)
        self.stage.tell(RunStarted(planned, check=self.check))
        for phase in self.plan.phases:
            self._phase(phase)
        outcome = Outcome(
            duration_s=round(self.stage.clock() - began + self.looking_s, 3),
            phases=tuple(self.phases),
            findings=tuple(self.findings),
            interrupted=self.interrupted,
            check=self.check,
        )
        self.stage.tell(RunFinished(outcome))
        return outcome

    def _phase(self, phase: PlannedPhase) -> None:
        self.number += 1
        blocked = self._blocked(phase)
        hosts = tuple(host for host in _hosts(phase) if host not in self.dropped)
        if blocked or not hosts:
            self._finish(phase, {}, blocked=blocked)
            return
        self.stage.tell(PhaseStarted(phase.name, phase.title, hosts, self.number, self.total))
        request = RunRequest(phase.playbook, self.plan.inventory, limit=hosts, check=self.check)
        self._take(phase, run_phase(phase, request, self.stage))
        self._judge(phase)

    def _take(self, phase: PlannedPhase, end: PhaseEnd) -> None:
        self.interrupted = self.interrupted or end.interrupted
        failure = engine_failure(phase.title, end.problem, self.stage.redactor) if end.problem else None
        self.engine_failed = self.engine_failed or failure is not None
        self.findings.extend(end.findings)
        self._finish(phase, end.result.hosts, duration_s=end.result.duration_s, failure=failure)
        for host, result in end.result.hosts.items():
            if result.status is HostStatus.UNREACHABLE or not (self.check or result.status.good):
                self.dropped.setdefault(host, f"{result.status.value} in phase {phase.name}")

    def _judge(self, phase: PlannedPhase) -> None:
        gate = self.gates.get(phase.name)
        hosts = tuple(host for host, result in self.phases[-1].hosts.items() if result.status.good)
        if gate is None or self.check or self.interrupted or self.engine_failed or not hosts:
            return
        self.number += 1
        self.stage.tell(PhaseStarted(gate.name, gate.title, hosts, self.number, self.total))
        began, result, failure = self.stage.clock(), HostResult(HostStatus.OK), None
        found: tuple[Finding, ...] = ()
        try:
            found = tuple(gate.check(hosts))
        except KeyboardInterrupt:
            self.interrupted, result = True, HostResult(HostStatus.INTERRUPTED)
        except PaiError as problem:  # what was installed before must still be reported
            failure = engine_failure(gate.title, problem, self.stage.redactor)
            self.engine_failed, result = True, HostResult(HostStatus.LEFT, why=failure.message)
        duration_s = round(self.stage.clock() - began, 3)
        looked = PhaseResult(gate.name, gate.title, duration_s, dict.fromkeys(hosts, result), failure)
        self.phases.append(looked)
        self.stage.tell(PhaseFinished(looked))
        self.findings.extend(found)
        if worst(found) is Verdict.FAIL:
            self.gate_failed.add(phase.name)

    def _finish(
        self,
        phase: PlannedPhase,
        ran: Mapping[str, HostResult],
        *,
        duration_s: float = 0.0,
        failure: Failure | None = None,
        blocked: str = "",
    ) -> None:
        left = {
            host: HostResult(HostStatus.LEFT, why=self.dropped.get(host) or blocked)
            for host in _hosts(phase)
            if host not in ran
        }
        result = PhaseResult(phase.name, phase.title, duration_s, {**ran, **left}, failure)
        self.phases.append(result)
        self.stage.tell(PhaseFinished(result))

    def _blocked(self, phase: PlannedPhase) -> str:
        """Why the phase may not start at all; empty when it may."""
        if self.interrupted:
            return "the run was interrupted"
        if self.engine_failed:
            return "Ansible itself failed in an earlier phase"
        if failed := self.gate_failed.intersection(phase.needs):
            return f"a check after phase {', '.join(sorted(failed))} failed"
        for done in self.phases:
            if done.name in phase.needs and not self.check and not _succeeded_somewhere(done):
                return f"step {done.name} succeeded on no machine"
        return ""


def unreachable_hosts(unreachable: Mapping[str, str]) -> PhaseResult:
    """The observation of hosts that did not answer, where no fuller account of it exists."""
    return PhaseResult(
        name=OBSERVE,
        title="Look at the machines",
        duration_s=0.0,
        hosts={
            host: HostResult(HostStatus.UNREACHABLE, Counts(unreachable=1), Failure(host, message=why))
            for host, why in unreachable.items()
        },
    )


def _succeeded_somewhere(done: PhaseResult) -> bool:
    """Whether a step did its work on at least one of the machines that it had work on."""
    return any(result.status.good for result in done.hosts.values())


def _hosts(phase: PlannedPhase) -> tuple[str, ...]:
    return tuple(step.host for step in phase.hosts)
