"""Where a scenario is: what was seen moves it from scene to scene. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pai_install.schedulers.self_test.model import (
    GangSeen,
    Recording,
    Sample,
    Scenario,
    Scene,
    SceneMark,
    Want,
)


@dataclass(frozen=True, slots=True)
class Course:
    """A scenario as it is played. place: of its scene; len(scenes): it is over. lost: id of the pod that it removed."""

    scenario: Scenario
    recording: Recording
    place: int = 0
    lost: str = ""

    @property
    def scene(self) -> Scene | None:
        """The scene that goes on; None: none."""
        scenes = self.scenario.scenes
        return scenes[self.place] if self.place < len(scenes) else None

    @property
    def last(self) -> Sample | None:
        """What was seen last."""
        return self.recording.samples[-1] if self.recording.samples else None

    def victim(self) -> str:
        """Name of the pod that the scene removes; empty where it removes none."""
        seen = self.last
        pods = seen.of(self.scene.loses).pods if self.scene and self.scene.loses and seen else ()
        return next((pod.name for pod in pods if pod.id == self.lost), "")


def begun(scenario: Scenario, at_s: float) -> Course:
    """The course in its first scene."""
    return Course(scenario, Recording(scenario.name, (), (SceneMark(scenario.scenes[0].name, at_s),)))


def refused(course: Course, said: str) -> Course:
    """The course that ends, since the API does not take its objects."""
    recording = replace(course.recording, refused=said)
    return replace(course, recording=recording, place=len(course.scenario.scenes))


def seen(course: Course, sample: Sample) -> Course:
    """The course after one more look: a scene that is met gives way to the next, one that is late ends the scenario."""
    recording = _with(course.recording, sample)
    course = replace(course, recording=recording)
    scene, mark = course.scene, recording.marks[-1]
    if scene is None:
        return course
    late = sample.at_s - mark.began_s >= scene.within_s
    if _met(course, scene, sample) if scene.wants else late:
        return _next(course, sample.at_s)
    return replace(course, place=len(course.scenario.scenes)) if late else course


def told(course: Course, scene: str, why: str) -> Course:
    """The course with what the scheduler said at the end of a scene."""
    marks = tuple(replace(mark, why=why) if mark.name == scene else mark for mark in course.recording.marks)
    return replace(course, recording=replace(course.recording, marks=marks))


def _next(course: Course, at_s: float) -> Course:
    done = replace(course.recording.marks[-1], met_s=at_s)
    moved = replace(course, place=course.place + 1)
    following = (SceneMark(moved.scene.name, at_s),) if moved.scene else ()
    marks = (*course.recording.marks[:-1], done, *following)
    return replace(moved, recording=replace(course.recording, marks=marks), lost=_lost(moved) or course.lost)


def _lost(course: Course) -> str:
    """The pod that the scene is to remove: the first by name."""
    scene, sample = course.scene, course.last
    if scene is None or not scene.loses or sample is None:
        return ""
    pods = sorted(sample.of(scene.loses).pods, key=lambda pod: pod.name)
    return next((pod.id for pod in pods if pod.runs), "")


def _with(recording: Recording, sample: Sample) -> Recording:
    """The recording with a sample; of several of one scene that are alike the first and the last are kept."""
    samples, since = recording.samples, recording.marks[-1].began_s
    alike = [one for one in samples[-2:] if one.at_s > since and one.gangs == sample.gangs]
    if len(alike) > 1:
        samples = samples[:-1]
    return replace(recording, samples=(*samples, sample))


def _met(course: Course, scene: Scene, sample: Sample) -> bool:
    gangs = course.scenario.gangs
    return all(_has(want, sample.of(name), gangs[name].size, course.lost) for name, want in scene.wants.items())


def _has(want: Want, gang: GangSeen, size: int, lost: str) -> bool:
    match want:
        case Want.WHOLE:
            return gang.running == size
        case Want.DONE:
            return gang.done
        case Want.HOLDS:
            return gang.held > 0
        case Want.GONE:
            return gang.held == 0
        case Want.RENEWED:
            return gang.running == size and lost not in {pod.id for pod in gang.pods if pod.runs}
