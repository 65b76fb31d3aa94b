"""Recordings of the self-test -> a finding for each promise. Pure.

A promise that was not seen to be kept is never kept: what could not be tried is UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pai_install.checks.finding import Finding
from pai_install.checks.result import Result, failed, passed, unknown
from pai_install.checks.verdict import Action, Verdict
from pai_install.schedulers.self_test.guarantees import PROMISES, START, Promise
from pai_install.schedulers.self_test.model import Recording, Scenario, ScenarioStep, Violation

SUBJECT = "cluster"


@dataclass(frozen=True, slots=True)
class RecordedScenario:
    """A scenario and what was seen of it."""

    scenario: Scenario
    recording: Recording

    def steps(self, check: str) -> tuple[ScenarioStep, ...]:
        """The steps by which a check is decided: from the one after an earlier check's end to its own."""
        found: list[ScenarioStep] = []
        for step in self.scenario.steps:
            found.append(step)
            if step.proves == check:
                break
            if step.proves:
                found = [ScenarioStep(step.name)]  # without the earlier one nothing is shown
        return tuple(found)

    def why(self, step: str) -> str:
        """What was said of jobs that waited in a step: by the scheduler, else by the pods."""
        mark = self.recording.mark(step)
        reasons = [seen.why for sample in self.recording.during(step)[-1:] for seen in sample.gangs.values()]
        return (mark.why if mark else "") or next(filter(None, reasons), "")

    def took(self, step: str) -> float | None:
        """Seconds until a step was met; None where it was not."""
        mark = self.recording.mark(step)
        return None if mark is None or mark.met_s is None else mark.met_s - mark.began_s


def judged(run: RecordedScenario) -> tuple[Finding, ...]:
    """The findings of one scenario."""
    return tuple(_finding(PROMISES[check], _result(PROMISES[check], run), run) for check in run.scenario.checks)


def _result(promise: Promise, run: RecordedScenario) -> Result:
    steps = run.steps(promise.check.id)
    unseen = _unseen(promise, run, {step.name for step in steps if step.is_preparation})
    if unseen is not None:
        return unseen
    broken = next(_violations(run, steps), None)
    if broken is not None:
        if broken.unseen:
            return unknown(broken.message)
        return failed(broken.message, broken.value, broken.expected)
    if run.took(steps[-1].name) is None:
        return unknown("the test ended before this scenario", remedy="run it again")
    took = ((step.name, run.took(step.name)) for step in steps if step.wants)
    return passed(message=", ".join(f"{name} after {seconds:.0f} s" for name, seconds in took if seconds is not None))


def _unseen(promise: Promise, run: RecordedScenario, preparations: set[str]) -> Result | None:
    """Why nothing is known of a promise; None where it was tried."""
    recording = run.recording
    if recording.refused:
        return unknown("the API rejected the objects of the test", recording.refused, remedy=promise.check.remedy)
    if recording.missed in preparations:
        return unknown("no job reached this scenario", run.why(recording.missed), remedy=PROMISES[START].check.remedy)
    if any(mark.name not in preparations and not recording.during(mark.name) for mark in recording.marks):
        return unknown("the cluster was not observed during this scenario")
    if not {mark.name for mark in recording.marks} - preparations:
        return unknown("the test ended before this scenario", remedy="run it again")
    return None


def _violations(run: RecordedScenario, steps: Sequence[ScenarioStep]) -> Iterator[Violation]:
    """In the order of the steps; limits of steps that follow each other are held against both."""
    for number, step in enumerate(steps):
        for limit in step.limits:
            before = steps[number - 1] if number and limit in steps[number - 1].limits else None
            samples = (*(run.recording.during(before.name) if before else ()), *run.recording.during(step.name))
            found = limit.violation(samples, run.scenario.gangs)
            if found is not None:
                yield found
        took = run.took(step.name)
        if step.missed and run.recording.missed == step.name:
            yield Violation(step.missed, run.why(step.name), f"{step.due_s:g} s" if step.due_s else "")
        elif step.due_s and took is not None and took > step.due_s:
            yield Violation(step.missed, f"{took:.0f} s", f"{step.due_s:g} s")


def _finding(promise: Promise, result: Result, run: RecordedScenario) -> Finding:
    sick = result.verdict is Verdict.FAIL
    samples = run.recording.samples
    seconds = samples[-1].at_s - samples[0].at_s if samples else 0.0
    return Finding(
        promise.check.id,
        result.verdict,
        SUBJECT,
        f"{promise.meaning}: {result.message}" if sick else f"{promise.check.title}: {result.message}",
        result.value[:400],
        result.expected,
        result.remedy or (promise.check.remedy if sick else ""),
        action=Action.CONFIG if sick else Action.NONE,
        evidence=f"{len(samples)} looks in {seconds:.0f} s at namespace {run.scenario.namespace}",
    )


def started(runs: Sequence[RecordedScenario]) -> Finding:
    """The finding on what all scenarios begin with: whether any job starts."""
    check, meaning = PROMISES[START].check, PROMISES[START].meaning
    evidence = f"the first jobs of {len(runs)} namespaces"
    stuck = [run for run in runs if run.recording.refused or _is_stuck(run)]
    if stuck:
        reasons = (f"{run.scenario.name}: {run.recording.refused or run.why(run.recording.missed)}" for run in stuck)
        message = f"{meaning}: {len(stuck)} of {len(runs)} that should have did not"
        value = "; ".join(reasons)[:400]
        return Finding(START, Verdict.FAIL, SUBJECT, message, value, "", check.remedy, "", Action.CONFIG, "", evidence)
    return Finding(START, Verdict.PASS, SUBJECT, f"{check.title}: {len(runs)} of {len(runs)} did", evidence=evidence)


def _is_stuck(run: RecordedScenario) -> bool:
    """Whether not even the jobs came that only prepare."""
    return any(step.name == run.recording.missed and not step.missed for step in run.scenario.steps)


def untried(check: str, reason: str) -> Finding:
    """The finding on a promise that this scheduler does not make, or that was not tried for a reason."""
    return Finding(check, Verdict.SKIP, SUBJECT, f"{PROMISES[check].check.title}: {reason}")
