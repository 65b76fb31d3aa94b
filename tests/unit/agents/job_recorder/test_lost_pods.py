"""Which pods are let go of: those whose machine is gone, and no others."""

from __future__ import annotations

import pytest

from pai_install.agents.job_recorder.lost_pods import AGAIN_S, LATE_S, LostPods, is_lost
from tests.unit.agents.job_recorder.objects import Object, pod

# what `going` says
DELETED_S = 1767225660.0
OVERDUE_S = DELETED_S + LATE_S


def lost(*pods: Object) -> LostPods:
    found = LostPods(frozenset({"vision"}))
    for one in pods:
        found.see(one)
    return found


def test_a_machine_has_its_time_to_say_that_a_pod_has_ended() -> None:
    found = lost(pod(0, going=True), pod(1))
    assert found.due(OVERDUE_S - 1) == []
    (release,) = found.due(OVERDUE_S)
    assert (release.namespace, release.pod, release.uid, release.node) == ("vision", "train-0-0", "pod-0", "g1")
    assert found.due(OVERDUE_S + AGAIN_S - 1) == []
    assert found.due(OVERDUE_S + AGAIN_S) == [release]


@pytest.mark.parametrize(("phase", "ended"), [("Succeeded", True), ("Failed", True), ("Running", False)])
def test_a_pod_that_ended_keeps_its_end(phase: str, *, ended: bool) -> None:
    for found in (lost(pod(0, phase=phase, going=True)), lost(pod(0, going=True), pod(0, phase=phase, going=True))):
        assert found.due(OVERDUE_S - 1) == []
        assert [release.ended for release in found.due(OVERDUE_S)] == [ended]


def test_pods_that_are_gone_or_of_no_group_or_on_no_machine_are_not_looked_at() -> None:
    found = lost(pod(0, going=True), pod(1, going=True))
    found.gone(pod(0, going=True))
    found.retain(())
    assert found.due(OVERDUE_S) == []
    elsewhere, unplaced = pod(0, going=True), pod(1, going=True)
    elsewhere["metadata"]["namespace"] = "kube-system"
    del unplaced["spec"]["nodeName"]
    assert lost(elsewhere, unplaced).due(OVERDUE_S) == []


def test_what_is_listed_after_a_restart_is_known_again() -> None:
    found = lost(pod(0, going=True))
    found.retain({"pod-0"})
    assert [release.pod for release in found.due(OVERDUE_S)] == ["train-0-0"]


@pytest.mark.parametrize(("status", "expected"), [("Unknown", True), ("False", False), ("True", False)])
def test_a_machine_that_is_ill_but_reports_is_not_lost(status: str, *, expected: bool) -> None:
    conditions = [{"type": "MemoryPressure", "status": "Unknown"}, {"type": "Ready", "status": status}]
    assert is_lost({"status": {"conditions": conditions}}) is expected
    assert not is_lost({})
