"""Where a scenario is: what was seen moves it from step to step. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pai_install.schedulers.self_test.model import (
    GangState,
    ObservedGang,
    Recording,
    Sample,
    Scenario,
    ScenarioStep,
    StepMark,
)


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """A scenario as it is played. place: of its step; len(steps): it is over. lost: id of the pod that it removed."""

    scenario: Scenario
    recording: Recording
    place: int = 0
    lost: str = ""

    @property
    def step(self) -> ScenarioStep | None:
        """The step that goes on; None: none."""
        steps = self.scenario.steps
        return steps[self.place] if self.place < len(steps) else None

    @property
    def last(self) -> Sample | None:
        """What was seen last."""
        return self.recording.samples[-1] if self.recording.samples else None

    def victim(self) -> str:
        """Name of the pod that the step removes; empty where it removes none."""
        seen = self.last
        pods = seen.of(self.step.loses).pods if self.step and self.step.loses and seen else ()
        return next((pod.name for pod in pods if pod.id == self.lost), "")


def begun(scenario: Scenario, at_s: float) -> ScenarioRun:
    """The run in its first step."""
    return ScenarioRun(scenario, Recording(scenario.name, (), (StepMark(scenario.steps[0].name, at_s),)))


def refused(run: ScenarioRun, answer: str) -> ScenarioRun:
    """The run that ends, since the API does not take its objects."""
    recording = replace(run.recording, refused=answer)
    return replace(run, recording=recording, place=len(run.scenario.steps))


def seen(run: ScenarioRun, sample: Sample) -> ScenarioRun:
    """The run after one more look: a step that is met gives way to the next, one that is late ends the scenario."""
    recording = _with(run.recording, sample)
    run = replace(run, recording=recording)
    step, mark = run.step, recording.marks[-1]
    if step is None:
        return run
    late = sample.at_s - mark.began_s >= step.within_s
    if _met(run, step, sample) if step.wants else late:
        return _next(run, sample.at_s)
    return replace(run, place=len(run.scenario.steps)) if late else run


def explained(run: ScenarioRun, step: str, why: str) -> ScenarioRun:
    """The run with what the scheduler said at the end of a step."""
    marks = tuple(replace(mark, why=why) if mark.name == step else mark for mark in run.recording.marks)
    return replace(run, recording=replace(run.recording, marks=marks))


def _next(run: ScenarioRun, at_s: float) -> ScenarioRun:
    done = replace(run.recording.marks[-1], met_s=at_s)
    moved = replace(run, place=run.place + 1)
    following = (StepMark(moved.step.name, at_s),) if moved.step else ()
    marks = (*run.recording.marks[:-1], done, *following)
    return replace(moved, recording=replace(run.recording, marks=marks), lost=_lost(moved) or run.lost)


def _lost(run: ScenarioRun) -> str:
    """The pod that the step is to remove: the first by name."""
    step, sample = run.step, run.last
    if step is None or not step.loses or sample is None:
        return ""
    pods = sorted(sample.of(step.loses).pods, key=lambda pod: pod.name)
    return next((pod.id for pod in pods if pod.runs), "")


def _with(recording: Recording, sample: Sample) -> Recording:
    """The recording with a sample; of several of one step that are alike the first and the last are kept."""
    samples, since = recording.samples, recording.marks[-1].began_s
    alike = [one for one in samples[-2:] if one.at_s > since and one.gangs == sample.gangs]
    if len(alike) > 1:
        samples = samples[:-1]
    return replace(recording, samples=(*samples, sample))


def _met(run: ScenarioRun, step: ScenarioStep, sample: Sample) -> bool:
    gangs = run.scenario.gangs
    return all(_has(want, sample.of(name), gangs[name].size, run.lost) for name, want in step.wants.items())


def _has(want: GangState, gang: ObservedGang, size: int, lost: str) -> bool:
    match want:
        case GangState.WHOLE:
            return gang.running == size
        case GangState.DONE:
            return gang.done
        case GangState.HOLDS:
            return gang.held > 0
        case GangState.GONE:
            return gang.held == 0
        case GangState.RENEWED:
            return gang.running == size and lost not in {pod.id for pod in gang.pods if pod.runs}
