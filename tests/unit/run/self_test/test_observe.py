"""Pods and jobs as the API has them -> samples."""

from __future__ import annotations

from typing import Any

import pytest

from pai_install.run.self_test.observe import last_warning, samples
from pai_install.schedulers.self_test.model import Gang, ObservedGang, ObservedPod, Scenario, ScenarioStep

PLAY = Scenario(
    "play", (), (), (ScenarioStep("start", starts=(Gang("pair", "only", (2,)), Gang("other", "only", (1,)))),)
)


def entry(kind: str, name: str, gang: str = "pair", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "scheduler-self-test-play", "uid": f"uid-{name}"}
    metadata["labels"] = {"pai-install/gang": gang}  # type: ignore[assignment]
    return {"kind": kind, "metadata": metadata, **more}


def seen(*objects: dict[str, Any]) -> ObservedGang:
    return samples(objects, (PLAY,), 3.0)["play"].of("pair")


def test_pods_are_seen_by_scenario_and_gang() -> None:
    running = entry("Pod", "a", spec={"nodeName": "w1"}, status={"phase": "Running"})
    ending = entry("Pod", "b", spec={"nodeName": "w1"}, status={"phase": "Running"})
    ending["metadata"]["deletionTimestamp"] = "now"
    stranger = entry("Pod", "c", "other", spec={}, status={"phase": "Pending"})
    elsewhere = entry("Pod", "d", spec={}, status={})
    elsewhere["metadata"]["namespace"] = "vision"
    found = samples([running, ending, stranger, elsewhere], (PLAY,), 3.0)
    assert list(found) == ["play"]
    assert found["play"].at_s == 3.0
    assert found["play"].of("pair").pods == (
        ObservedPod("uid-a", "a", "w1", "Running"),
        ObservedPod("uid-b", "b", "w1", "Running", ending=True),
    )
    assert found["play"].of("other").pods == (ObservedPod("uid-c", "c", "", "Pending"),)


def test_a_pod_that_waits_says_why() -> None:
    scheduled = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
    pod = entry("Pod", "a", spec={}, status={"phase": "Pending", "conditions": [scheduled]})
    assert seen(pod).why == "0/3 nodes are available"


@pytest.mark.parametrize(
    ("kind", "status", "done"),
    [
        ("Job", {"conditions": [{"type": "Complete", "status": "True"}]}, True),
        ("Job", {"conditions": [{"type": "Complete", "status": "False"}]}, False),
        ("Job", {"conditions": [{"type": "Failed", "status": "True"}]}, False),
        ("JobSet", {"conditions": [{"type": "Completed", "status": "True"}]}, True),
        ("Job", {"state": {"phase": "Completed"}}, True),
        ("Job", {"state": {"phase": "Restarting"}}, False),
        ("Job", {}, False),
    ],
)
def test_a_job_has_ended_well_when_it_says_so(kind: str, status: dict[str, Any], *, done: bool) -> None:
    assert seen(entry(kind, "pair", status=status)).done is done


def test_all_jobs_of_a_gang_have_to_end() -> None:
    ended = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert not seen(entry("Job", "pair-0", status=ended), entry("Job", "pair-1", status={})).done


def test_the_youngest_warning_is_told() -> None:
    old = {"lastTimestamp": "2026-11-23T08:30:57Z", "message": "0/3 nodes"}
    new = {"eventTime": "2026-11-23T08:31:00.000000Z", "lastTimestamp": None, "message": "Error creating"}
    assert last_warning([new, old]) == "Error creating"
    assert last_warning([]) == last_warning([{}]) == ""


def test_what_makes_no_sense_is_nothing_seen() -> None:
    assert seen({"kind": "Pod"}, {"kind": "Pod", "metadata": None}, {}) == ObservedGang()
