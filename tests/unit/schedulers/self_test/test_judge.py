"""Verdicts on recordings: what was seen of each scenario, and what it means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from pai_install.schedulers.registry import backend_of
from pai_install.schedulers.self_test.guarantees import PROMISES, START, left_out
from pai_install.schedulers.self_test.judge import RecordedScenario, judged, started, untried
from pai_install.schedulers.self_test.manifests import scenarios
from pai_install.schedulers.self_test.model import ObservedGang, ObservedPod, Recording, Sample, Scenario, StepMark
from pai_install.schedulers.self_test.record import as_data, parse
from pai_install.schedulers.self_test.scenarios import Bounds
from pai_install.scheduling.model import BACKENDS, Backend

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))
BOUNDS = Bounds(requeue_s=50)
SCENARIOS = {one.name: one for one in scenarios("kueue", BOUNDS)}


def gang(running: int = 0, *, pending: int = 0, ended: int = 0, ending: int = 0) -> ObservedGang:
    """A gang with so many pods that run, have a place and wait, ended well, are told to end."""
    states = [("Running", False)] * running + [("Pending", False)] * pending
    states += [("Succeeded", False)] * ended + [("Running", True)] * ending
    pods = (ObservedPod(f"id-{n}", f"pod-{n}", "w1", phase, told) for n, (phase, told) in enumerate(states))
    return ObservedGang(tuple(pods), done=bool(ended) and not running)


Looks = list[tuple[float, dict[str, ObservedGang]]]


def play(name: str, looks: Looks, *marks: tuple[str, float, float | None]) -> RecordedScenario:
    samples = tuple(Sample(at_s, gangs) for at_s, gangs in looks)
    return RecordedScenario(SCENARIOS[name], Recording(name, samples, tuple(StepMark(*mark) for mark in marks)))


def verdicts(one: RecordedScenario) -> list[tuple[str, str]]:
    return [(found.id.removeprefix("scheduler-"), str(found.verdict)) for found in judged(one)]


FULL: Looks = [(2, {"first": gang(2)})]


def test_a_gang_that_starts_in_part_while_it_has_to_wait_is_a_broken_promise() -> None:
    looks = [*FULL, (4, {"first": gang(2), "whole": gang(1, pending=1)}), (9, {"first": gang(2)}), (11, {})]
    one = play("gang", looks, ("fill", 0, 2), ("wait", 2, 9), ("start", 9, None))
    (found,) = judged(one)
    assert (found.verdict, found.remedy != "") == ("FAIL", True)
    assert (found.value, found.expected) == ("2 of 3 pods", "0")


@pytest.mark.parametrize(("until_s", "verdict"), [(15, "PASS"), (25, "FAIL")])
def test_a_gang_has_a_little_time_to_take_its_places(until_s: float, verdict: str) -> None:
    looks = [*FULL, (9, {"first": gang(2)}), (10, {"whole": gang(1)}), (until_s, {"whole": gang(3)})]
    one = play("gang", looks, ("fill", 0, 2), ("wait", 2, 9), ("start", 9, until_s))
    assert verdicts(one) == [("gang", verdict)]


def test_gangs_that_follow_each_other_may_meet_while_pods_end() -> None:
    well: Looks = [(2, {"one": gang(3)}), (6, {"one": gang(1, ended=2), "two": gang(3)}), (9, {"two": gang(ended=3)})]
    bad: Looks = [(2, {"one": gang(2), "two": gang(2)}), (9, {"one": gang(ended=3), "two": gang(ended=3)})]
    stuck: Looks = [(2, {"one": gang(3)})]
    assert verdicts(play("deadlock", well, ("both", 0, 9))) == [("deadlock", "PASS")]
    assert verdicts(play("deadlock", bad, ("both", 0, 9))) == [("deadlock", "FAIL")]
    assert verdicts(play("deadlock", stuck, ("both", 0, None))) == [("deadlock", "FAIL")]


@pytest.mark.parametrize(("more", "verdict"), [(gang(), "PASS"), (gang(pending=1), "FAIL"), (gang(ending=1), "PASS")])
@pytest.mark.parametrize("name", ["quota", "cores"])
def test_a_queue_holds_its_quota(name: str, more: ObservedGang, verdict: str) -> None:
    looks = [*FULL, (8, {"first": gang(2), "more": more}), (12, {"more": gang(1)})]
    assert verdicts(play(name, looks, ("fill", 0, 2), ("wait", 2, 8), ("start", 8, 12))) == [(name, verdict)]


def test_a_quota_that_is_never_given_again_is_no_quota() -> None:
    looks = [*FULL, (8, {"first": gang(2)}), (70, {})]
    assert verdicts(play("quota", looks, ("fill", 0, 2), ("wait", 2, 8), ("start", 8, None))) == [("quota", "FAIL")]


BORROWED: Looks = [(2, {"guest": gang(4)})]
TAKEN = (("borrow", 0, 2), ("take back", 2, 8), ("settle", 8, 14), ("return", 14, 20))


def reclaim(looks: Looks, *marks: Any) -> str:
    found = dict(verdicts(play("borrow", [*BORROWED, *looks], *marks)))
    assert found["borrow"] == "PASS"
    return found["reclaim"]


def test_an_owner_has_its_own_again_and_the_guest_leaves_whole() -> None:
    owner = gang(2)
    clean: Looks = [(8, {"owner": owner}), (14, {"owner": owner}), (20, {"guest": gang(4)})]
    rest: Looks = [(8, {"owner": owner, "guest": gang(2)}), (14, {"owner": owner, "guest": gang(2)}), (20, {})]
    assert reclaim(clean, *TAKEN) == "PASS"
    assert reclaim(rest, *TAKEN) == "FAIL"
    assert reclaim(clean, *TAKEN[:-1], ("return", 14, None)) == "FAIL"


@pytest.mark.parametrize(("met_s", "verdict"), [(32, "PASS"), (33, "FAIL"), (None, "FAIL")])
def test_an_owner_waits_within_a_bound(met_s: float | None, verdict: str) -> None:
    at = met_s or 62
    looks: Looks = [(at, {"owner": gang(2)}), (at + 6, {"owner": gang(2)}), (at + 9, {"guest": gang(4)})]
    marks = (("borrow", 0, 2), ("take back", 2, met_s), ("settle", at, at + 6), ("return", at + 6, at + 9))
    assert reclaim(looks, *(marks if met_s else marks[:2])) == verdict


def test_a_guest_that_is_evicted_pod_by_pod_must_be_quick() -> None:
    looks: Looks = [(4, {"guest": gang(2)}), (26, {"owner": gang(2)}), (32, {"owner": gang(2)}), (40, {})]
    marks = (("borrow", 0, 2), ("take back", 2, 26), ("settle", 26, 32), ("return", 32, 40))
    assert reclaim(looks, *marks) == "FAIL"


def test_what_was_not_lent_cannot_be_taken_back() -> None:
    one = play("borrow", [(60, {})], ("borrow", 0, None))
    assert verdicts(one) == [("borrow", "FAIL"), ("reclaim", "UNKNOWN")]


@pytest.mark.parametrize(
    ("both", "verdict"),
    [
        ([{"high": gang(2)}, {"high": gang(ended=2), "low": gang(2)}], "PASS"),
        ([{"low": gang(1)}, {"high": gang(2)}], "PASS"),  # evicted for it
        ([{"low": gang(2)}, {"low": gang(ended=2), "high": gang(2)}], "FAIL"),
        ([{"low": gang(ended=2)}, {"low": gang(ended=2), "high": gang(ended=2)}], "FAIL"),
    ],
)
def test_the_more_important_job_goes_first(both: list[dict[str, ObservedGang]], verdict: str) -> None:
    looks: Looks = [*FULL, (5, {}), (8, {}), *((10 + 2 * n, row) for n, row in enumerate(both))]
    marks = (("fill", 0, 2), ("low asks", 2, 5), ("high asks", 5, 8), ("both", 8, 20))
    assert verdicts(play("priority", looks, *marks)) == [("priority", verdict)]


def test_a_job_that_fits_nowhere_holds_nothing_and_keeps_nobody_waiting() -> None:
    marks = (("wait", 0, 6), ("pass", 6, 9))
    assert verdicts(play("oversize", [(6, {}), (9, {"small": gang(1)})], *marks)) == [("oversize", "PASS")]
    half: Looks = [(6, {"large": gang(2)}), (9, {"small": gang(1)})]
    assert verdicts(play("oversize", half, *marks)) == [("oversize", "FAIL")]
    assert verdicts(play("oversize", [(6, {}), (66, {})], ("wait", 0, 6), ("pass", 6, None))) == [("oversize", "FAIL")]


def test_half_a_job_must_give_back_what_it_holds() -> None:
    looks: Looks = [(2, {"half": gang(2)}), (30, {})]
    assert verdicts(play("requeue", looks, ("half", 0, 2), ("requeue", 2, 30))) == [("requeue", "PASS")]
    stays: Looks = [(2, {"half": gang(2)}), (52, {"half": gang(2)})]
    (found,) = judged(play("requeue", stays, ("half", 0, 2), ("requeue", 2, None)))
    assert found.verdict == "FAIL"


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_seen_is_nothing_proven(name: str) -> None:
    """No looks at all, no step at all, and objects that the API did not take."""
    marks = tuple(StepMark(step.name, n, n + 1) for n, step in enumerate(SCENARIOS[name].steps))
    for recording in (Recording(name), Recording(name, marks=marks), Recording(name, refused="no")):
        for found in judged(RecordedScenario(SCENARIOS[name], recording)):
            assert found.verdict == "UNKNOWN", found.message


def test_jobs_that_do_not_start_at_all_are_told_apart(snapshot: SnapshotAssertion) -> None:
    well = play("quota", FULL, ("fill", 0, 2))
    stuck = play("gang", [(60, {"first": ObservedGang(why="0/3 nodes are available")})], ("fill", 0, None))
    refused = RecordedScenario(SCENARIOS["restart"], Recording("restart", refused="no JobSet"))
    broken = play("deadlock", [(60, {})], ("both", 0, None))
    assert started([well, broken]).verdict == "PASS"
    found = started([well, stuck, refused])
    assert (found.verdict, found.value) == snapshot


PODS = st.builds(
    ObservedPod,
    st.sampled_from(["a", "b", "c"]),
    st.just("pod"),
    st.sampled_from(["", "w1"]),
    st.sampled_from(["Pending", "Running", "Succeeded", "Failed", ""]),
    st.booleans(),
)


@given(st.data())
def test_whatever_is_seen_has_one_verdict_for_each_promise(data: st.DataObject) -> None:
    scenario = data.draw(st.sampled_from(list(SCENARIOS.values())))
    names = list(scenario.gangs)
    looks = data.draw(
        st.lists(
            st.dictionaries(st.sampled_from(names), st.builds(ObservedGang, st.lists(PODS).map(tuple), st.booleans()))
        )
    )
    reached = data.draw(st.integers(0, len(scenario.steps)))
    met = data.draw(st.booleans())
    marks = tuple(
        StepMark(step.name, 3.0 * n, 3.0 * n + 3 if n + 1 < reached or met else None)
        for n, step in enumerate(scenario.steps[:reached])
    )
    samples = tuple(Sample(float(n), row) for n, row in enumerate(looks, 1))
    found = judged(RecordedScenario(scenario, Recording(scenario.name, samples, marks)))
    assert tuple(one.id for one in found) == scenario.checks
    for one in found:
        assert one.message
        assert (one.verdict == "FAIL") == one.message.startswith(PROMISES[one.id].meaning)
        if one.verdict == "PASS":
            assert samples
            shown = next((it.name for it in scenario.steps if it.proves == one.id), scenario.steps[-1].name)
            assert [mark.met_s is not None for mark in marks if mark.name == shown] == [True]


@given(st.data())
def test_a_recording_is_the_same_when_it_was_written_and_read(data: st.DataObject) -> None:
    gangs = st.dictionaries(st.text(), st.builds(ObservedGang, st.lists(PODS).map(tuple), st.booleans(), st.text()))
    samples = st.lists(st.builds(Sample, st.floats(0, 1000), gangs)).map(tuple)
    marks = st.lists(st.builds(StepMark, st.text(), st.floats(0, 9), st.none() | st.floats(0, 9), st.text())).map(tuple)
    recording = data.draw(st.builds(Recording, st.text(), samples, marks, st.text()))
    assert parse(json.loads(json.dumps(as_data(recording)))) == recording


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("disruptive", [True, False])
def test_every_promise_is_tried_once_or_has_a_reason(backend: Backend, *, disruptive: bool) -> None:
    chosen = tuple(one for one in scenarios(backend, BOUNDS) if disruptive or not one.disruptive)
    tried = [check for one in chosen for check in one.checks]
    reasons = dict(left_out(backend_of(backend).self_test.unsupported, chosen))
    together = [START] if chosen else []
    assert sorted([*together, *tried, *reasons]) == sorted(PROMISES)
    assert all(reasons.values())
    assert [str(untried(check, reason).verdict) for check, reason in reasons.items()] == ["SKIP"] * len(reasons)


def test_every_promise_has_a_rule_and_a_declared_check() -> None:
    tried = {check for one in scenarios("kueue", BOUNDS) for check in one.checks}
    assert tried == set(PROMISES) - {START}


def recorded(path: Path) -> list[tuple[Scenario, Recording]]:
    data = json.loads(path.read_text())
    known = {one.name: one for one in scenarios(data["backend"], BOUNDS)}
    return [(known[row["scenario"]], parse(row)) for row in data["recordings"]]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_was_seen_in_a_cluster_has_the_verdicts_of_then(path: Path) -> None:
    """Recorded by `scheduler test` in a lab of two workers: scheduler-test.json of the site, with what it said then."""
    plays = [RecordedScenario(*pair) for pair in recorded(path)]
    found = {one.id: str(one.verdict) for one in (started(plays), *(one for play in plays for one in judged(play)))}
    then = json.loads(path.read_text())["verdicts"]
    assert found == {check: verdict for check, verdict in then.items() if verdict != "SKIP"}
