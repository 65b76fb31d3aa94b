"""A scenario moves from step to step by what is seen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pai_install.schedulers.self_test.model import (
    Gang,
    GangState,
    ObservedGang,
    ObservedPod,
    Sample,
    Scenario,
    ScenarioStep,
)
from pai_install.schedulers.self_test.scenario_run import ScenarioRun, begun, explained, refused, seen

PAIR = Gang("pair", "only", (2,))
SCENARIO = Scenario(
    "play",
    (),
    (),
    (
        ScenarioStep("fill", starts=(PAIR,), wants={"pair": GangState.WHOLE}, within_s=10),
        ScenarioStep("watch", within_s=3),
        ScenarioStep("lose", loses="pair", wants={"pair": GangState.RENEWED}, within_s=10),
        ScenarioStep("leave", wants={"pair": GangState.GONE}, within_s=10),
    ),
)


def pods(*states: str) -> ObservedGang:
    """Pods by "ID phase": a phase in capitals ends."""
    words = [state.split() for state in states]
    return ObservedGang(
        tuple(ObservedPod(one, f"pod-{one}", "w1", phase.title(), phase.isupper()) for one, phase in words)
    )


def after(run: ScenarioRun, at_s: float, *states: str) -> ScenarioRun:
    return seen(run, Sample(at_s, {"pair": pods(*states)}))


def scene_of(run: ScenarioRun) -> str:
    return run.step.name if run.step else "over"


def test_a_stage_is_met_when_all_that_it_wants_has_come() -> None:
    run = after(begun(SCENARIO, 0.0), 1, "a Running", "b Pending")
    assert scene_of(run) == "fill"
    run = after(run, 2, "a Running", "b Running")
    assert scene_of(run) == "watch"
    assert [(mark.name, mark.began_s, mark.met_s) for mark in run.recording.marks] == [
        ("fill", 0.0, 2),
        ("watch", 2, None),
    ]


def test_a_stage_that_only_watches_takes_its_time() -> None:
    run = after(begun(SCENARIO, 0.0), 2, "a Running", "b Running")
    assert scene_of(after(run, 4.9, "a Running", "b Running")) == "watch"
    assert scene_of(after(run, 5, "a Running", "b Running")) == "lose"


def test_the_pod_that_is_removed_must_be_replaced() -> None:
    run = after(begun(SCENARIO, 0.0), 2, "a Running", "b Running")
    run = after(run, 5, "a Running", "b Running")
    assert run.victim() == "pod-a"
    assert scene_of(after(run, 6, "a Running", "b Running")) == "lose"
    assert scene_of(after(run, 6, "a RUNNING", "b Running", "c Running")) == "leave"


def test_gone_is_a_gang_that_holds_nothing() -> None:
    run = after(begun(SCENARIO, 0.0), 2, "a Running", "b Running")
    run = after(after(run, 5, "a Running", "b Running"), 6, "b Running", "c Running")
    assert scene_of(after(run, 7, "b Running")) == "leave"
    over = after(run, 7, "b RUNNING", "c Failed")
    assert scene_of(over) == "over"
    assert over.recording.missed == ""


def test_a_late_stage_ends_the_scenario_and_is_the_one_that_was_missed() -> None:
    run = after(begun(SCENARIO, 0.0), 10, "a Running")
    assert (scene_of(run), run.recording.missed) == ("over", "fill")
    assert after(run, 11, "a Running", "b Running").recording.missed == "fill"


def test_what_the_api_refuses_ends_the_scenario() -> None:
    run = refused(begun(SCENARIO, 0.0), "no")
    assert (scene_of(run), run.recording.refused) == ("over", "no")


def test_what_the_scheduler_said_belongs_to_a_stage() -> None:
    run = explained(after(begun(SCENARIO, 0.0), 2, "a Running", "b Running"), "fill", "room was found")
    assert [mark.why for mark in run.recording.marks] == ["room was found", ""]


@given(st.lists(st.sampled_from(["", "a Running", "a Pending"]), max_size=40))
def test_dropping_looks_that_are_alike_loses_no_change_and_no_time(states: list[str]) -> None:
    run = begun(Scenario("play", (), (), (ScenarioStep("watch", within_s=1000),)), 0.0)
    every = [Sample(float(number), {"pair": pods(*filter(None, [state]))}) for number, state in enumerate(states, 1)]
    for sample in every:
        run = seen(run, sample)
    kept = run.recording.samples

    def changes(samples: list[Sample]) -> list[Sample]:
        return [one for one, before in zip(samples, [None, *samples], strict=False)
                if before is None or one.gangs != before.gangs]  # fmt: skip

    assert changes(list(kept)) == changes(every)
    assert [one.at_s for one in kept[-1:]] == [one.at_s for one in every[-1:]]
    assert len(kept) <= 2 * len(changes(every))
