"""Jobs and pods as they are seen -> what jobs are told, and when they are stopped."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.agents.common.utilization import CONDITION
from pai_install.agents.job_recorder.idle import WARNED, Action, Idle, Lower, Stop, Warn, words
from pai_install.agents.job_recorder.limits import Limit
from tests.unit.agents.job_recorder.objects import Object, job, pod

NOW = 1_790_000_000
STOP = Limit("idle", 10, 3600, "stop", 1800)
NOTEBOOK = Limit("notebook", 10, 7200, "stop", 1800)
LONG = Limit("long", 0, 5 * 86400, "warn", 86400)
LIMITS = {"": (STOP, NOTEBOOK)}
WITH_LONG = {"": (STOP, NOTEBOOK, LONG)}


def used(steps: list[list[int]], at: int = NOW, **more: Any) -> list[Object]:
    told = {
        "version": 1,
        "at": at,
        "gpus": more.get("gpus", 2),
        "gpu": steps,
        "cpu": more.get("cpu", [[NOW - 9000, 100]]),
    }
    return [{"type": CONDITION, "status": "True", "message": json.dumps(told)}]


def idle_for(seconds: int, **more: Any) -> list[Object]:
    at = more.pop("at", NOW)
    return used([[at - seconds - 60, 100], [at - seconds, 40], [at, 3]], at, **more)


def measured(index: int, conditions: list[Object], **more: Any) -> Object:
    made = pod(index, **more)
    made["status"] |= {"conditions": conditions, "startTime": "2026-01-01T00:00:02Z"}
    return made


def listed(seen: Idle, resource: str, items: Collection[Object]) -> None:
    """All objects of a kind, as the recorder takes them."""
    for item in items:
        seen.see(resource, item)
    seen.retain(resource, {item["metadata"]["uid"] for item in items})


def due(item: Object, *pods: Object, limits: Any = LIMITS, now: float = NOW) -> list[Action]:
    seen = Idle(frozenset({"vision"}), limits)
    listed(seen, "batch/jobs", [item])
    listed(seen, "pods", pods)
    return seen.due(now)


def note(at: float, what: str = "idle", then: str = "stop", *, done: bool = False) -> dict[str, str]:
    return {WARNED: json.dumps({"what": what, "then": then, "at": at, "grace": 1800, "done": done, "says": "so"})}


def test_it_is_told_why_and_until_when(snapshot: SnapshotAssertion) -> None:
    (action,) = due(job(), measured(0, idle_for(3600)), measured(1, idle_for(4000)))
    assert isinstance(action, Warn)
    assert action.note is not None
    told = json.loads(action.note)
    assert (told["what"], told["then"], told["at"], told["done"]) == ("idle", "stop", NOW, False)
    assert told["says"] == snapshot


def test_after_the_grace_it_is_stopped_with_the_reason(snapshot: SnapshotAssertion) -> None:
    (action,) = due(job(notes=note(NOW - 1800)), measured(0, idle_for(5400)))
    assert isinstance(action, Stop)
    assert action.why == snapshot


@pytest.mark.parametrize(
    "pods",
    [
        [],
        [measured(0, idle_for(9000)), measured(1, idle_for(60))],  # one of them works
        [measured(0, idle_for(9000)), pod(1)],  # one is not measured
        [measured(0, idle_for(9000)), measured(1, idle_for(9000), phase="Pending")],
        [measured(0, idle_for(9000)), measured(1, idle_for(9000), going=True)],
        [measured(0, idle_for(9000, at=NOW - 400))],  # it was heard of too long ago
        [measured(0, idle_for(9000, at=NOW + 400))],
        [measured(0, used([[NOW, 3]]))],  # since when, nothing says
        [measured(0, idle_for(9000), user="mallory")],  # of another
        [measured(0, idle_for(9000), made=0, job="other")],
    ],
)
def test_what_is_not_known_of_all_is_not_idle(pods: list[Object]) -> None:
    assert due(job(), *pods) == []


def test_pods_that_have_ended_and_those_without_gpus_do_not_count() -> None:
    without = pod(2)
    without["spec"] = {**without["spec"], "containers": [{"name": "main"}]}
    ended = measured(1, idle_for(60), phase="Succeeded")
    assert len(due(job(), measured(0, idle_for(3600)), ended, without)) == 1


def test_pods_of_an_earlier_job_of_the_name_are_none_of_it() -> None:
    assert due(job(made=30), measured(0, idle_for(9000))) == []


def test_a_job_that_works_again_is_no_longer_warned() -> None:
    (action,) = due(job(notes=note(NOW - 1800)), measured(0, idle_for(60)))
    assert action == Warn(action.job, None)


@pytest.mark.parametrize(
    "spoilt", ["{", "{}", "[]", '{"what": "idle", "then": "shoot", "at": 1, "grace": 1, "done": false}']
)
def test_a_warning_that_cannot_be_read_is_none(spoilt: str) -> None:
    (action,) = due(job(notes={WARNED: spoilt}), measured(0, idle_for(5400)))
    assert isinstance(action, Warn)
    assert action.note is not None


def test_what_was_made_preemptible_stays_so(snapshot: SnapshotAssertion) -> None:
    limits = {"": (Limit("idle", 10, 3600, "preemptible", 1800), LONG)}
    (action,) = due(job(notes=note(NOW - 1800, then="preemptible")), measured(0, idle_for(5400)), limits=limits)
    assert isinstance(action, Lower)
    assert json.loads(action.note)["done"] is True
    assert json.loads(action.note)["says"] == snapshot
    after = job(notes={WARNED: action.note})
    assert due(after, measured(0, idle_for(60)), limits=limits) == []


def notebook(**more: Any) -> Object:
    made = job(**more)
    made["metadata"]["labels"]["pai-install/notebook"] = "true"
    return made


def test_a_notebook_has_a_limit_of_its_own_and_its_processors_count(snapshot: SnapshotAssertion) -> None:
    assert due(notebook(), measured(0, idle_for(5400, cpu=[[NOW - 9000, 100], [NOW, 1]]))) == []
    (action,) = due(notebook(), measured(0, idle_for(8000, cpu=[[NOW - 7500, 100], [NOW, 1]])))
    assert isinstance(action, Warn)
    assert action.note is not None
    assert action.note == snapshot
    assert due(notebook(), measured(0, idle_for(8000, cpu=[[NOW - 60, 20], [NOW, 1]]))) == []
    assert due(notebook(), measured(0, idle_for(8000, cpu=[[NOW - 9000, 1]]))) == []


def test_what_runs_for_long_is_told_though_it_is_busy(snapshot: SnapshotAssertion) -> None:
    (action,) = due(job(), measured(0, idle_for(60)), limits=WITH_LONG)
    assert isinstance(action, Warn)
    assert action.note is not None
    assert json.loads(action.note)["says"] == snapshot


def test_a_job_is_told_of_the_graver_thing_alone() -> None:
    long = note(NOW - 60, "long", "warn")
    (action,) = due(job(notes=long), measured(0, idle_for(3600)), limits=WITH_LONG)
    assert isinstance(action, Warn)
    assert action.note is not None
    assert json.loads(action.note)["what"] == "idle"
    assert due(job(notes=note(NOW - 60)), measured(0, idle_for(3600)), limits=WITH_LONG) == []
    warns = {"": (Limit("idle", 10, 3600, "warn", 1800), LONG)}
    assert due(job(notes=long), measured(0, idle_for(3600)), limits=warns) == []
    waiting = {"": (STOP, Limit("long", 0, 86400, "stop", 86400))}
    assert due(job(notes=note(NOW - 60, "long")), measured(0, idle_for(3600)), limits=waiting) == []


def test_what_others_may_take_is_still_stopped_for_another_reason(snapshot: SnapshotAssertion) -> None:
    lowered = note(NOW - 9000, then="preemptible", done=True)
    limits = {"": (Limit("idle", 10, 3600, "preemptible", 1800), Limit("long", 0, 86400, "stop", 3600))}
    (action,) = due(job(notes=lowered), measured(0, idle_for(60)), limits=limits)
    assert isinstance(action, Warn)
    assert str(action.note) == snapshot


def test_a_limit_that_is_gone_takes_its_warning_along() -> None:
    (action,) = due(job(notes=note(NOW - 60)), measured(0, idle_for(3600)), limits={"": (LONG,)})
    assert action == Warn(action.job, None)


def test_each_virtual_cluster_has_its_own() -> None:
    item = job()
    item["metadata"]["labels"]["pai-install/virtual-cluster"] = "research"
    assert (
        due(
            item, measured(0, idle_for(3600)), limits={**WITH_LONG, "research": (LONG, Limit("idle", 10, 9, "list", 9))}
        )
        != []
    )
    quiet = {"": (STOP,), "research": (Limit("idle", 10, 9, "list", 9),)}
    assert due(item, measured(0, idle_for(3600)), limits=quiet) == []


def test_without_limits_nothing_is_looked_at() -> None:
    assert due(job(), measured(0, idle_for(90000)), limits={}) == []
    assert due(job(space="elsewhere"), measured(0, idle_for(90000))) == []


def test_it_looks_every_quarter_of_a_minute_and_forgets_what_is_gone() -> None:
    seen = Idle(frozenset({"vision"}), LIMITS)
    held = measured(0, idle_for(3600))
    seen.see("batch/jobs", job())
    seen.see("pods", held)
    assert len(seen.due(NOW)) == 1
    assert seen.due(NOW + 5) == []
    assert len(seen.due(NOW + 20)) == 1
    seen.gone(held)
    assert seen.due(NOW + 40) == []
    seen.see("pods", held)
    listed(seen, "pods", [])
    assert seen.due(NOW + 60) == []
    seen.see("pods", held)
    listed(seen, "batch/jobs", [])
    assert seen.due(NOW + 80) == []


def test_a_pod_that_is_a_job_and_one_that_goes() -> None:
    alone = measured(0, idle_for(3600), alone=True)
    seen = Idle(frozenset({"vision"}), LIMITS)
    seen.see("pods", alone)
    (action,) = seen.due(NOW)
    assert (action.job.resource, action.job.name) == ("pods", alone["metadata"]["name"])
    alone["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z"
    seen.see("pods", alone)
    assert seen.due(NOW + 20) == []


@pytest.mark.parametrize(
    ("seconds", "says"),
    [(59, "0 minutes"), (60, "1 minute"), (7199, "119 minutes"), (7200, "2 hours"), (200000, "2 days")],
)
def test_how_long(seconds: int, says: str) -> None:
    assert words(seconds) == says
