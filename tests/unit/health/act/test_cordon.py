"""Cordoning: the sick ones, not too many, never a person's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from pai_install.checks.verdict import Verdict
from pai_install.health.act.cordon import LABEL, plan_cordons
from pai_install.health.evidence.document import CommandResult
from pai_install.health.report import HealthReport
from pai_install.kube.model import Node
from tests.unit.health.machines import NOW, Box, gpu_change, h100, healthy


def report(*, bad: Sequence[str] = (), good: Sequence[str] = (), gone: Sequence[str] = ()) -> HealthReport:
    machines = [gpu_change("remapped_rows/remapped_row_failure", "Yes")(healthy(2, name)).report() for name in bad]
    machines += [healthy(2, name).report() for name in good]
    return HealthReport(tuple(machines), dict.fromkeys(gone, "no route"))


def node(name: str, *, cordoned: bool | None = False, reason: str = "") -> Node:
    return Node(name, cordoned=cordoned, labels={LABEL: reason} if reason else {})


def test_a_node_that_does_not_say_is_not_cordoned_and_takes_room() -> None:
    nodes = [node("a", cordoned=None), *(node(name) for name in "bcde")]
    plan = plan_cordons(nodes, report(bad="ab", good="cde"), 0.2)
    assert (dict(plan.cordon), plan.refused) == ({}, ("b",))


def test_sick_nodes_are_cordoned_with_their_reason() -> None:
    nodes = [node(name) for name in "abcde"]
    plan = plan_cordons(nodes, report(bad=["b"], good="acde"), 0.2)
    assert dict(plan.cordon) == {"b": "gpu-remap-failed"}
    assert plan.release == plan.refused == ()


def test_silent_machines_are_cordoned_too() -> None:
    plan = plan_cordons([node(name) for name in "ab"], report(good="a", gone=["b"]), 0.5)
    assert dict(plan.cordon) == {"b": "machine-reachable"}


def test_no_more_than_the_share_counting_those_of_persons() -> None:
    nodes = [node("a", cordoned=True), *(node(name) for name in "bcdefghij")]
    plan = plan_cordons(nodes, report(bad="bcd", good="aefghij"), 0.2)
    assert dict(plan.cordon) == {"b": "gpu-remap-failed"}
    assert plan.refused == ("c", "d")
    assert plan_cordons(nodes, report(bad="bcd"), 0).refused == ("b", "c", "d")


def test_a_person_s_cordon_is_left_alone() -> None:
    nodes = [node("a", cordoned=True), *(node(name) for name in "bcd")]
    well = plan_cordons(nodes, report(good="abcd"), 0.5)
    assert (dict(well.cordon), well.release) == ({}, ())
    ill = plan_cordons(nodes, report(bad="a", good="bcd"), 0.5)
    assert dict(ill.cordon) == {}


def test_our_own_is_released_after_a_passing_run_only() -> None:
    nodes = [node("a", cordoned=True, reason="gpu-remap-failed"), node("b")]
    assert plan_cordons(nodes, report(good="ab"), 0.5).release == ("a",)
    assert plan_cordons(nodes, report(bad="a", good="b"), 0.5).release == ()
    assert plan_cordons(nodes, report(good="b"), 0.5).release == ()
    assert plan_cordons(nodes, report(good="b", gone="a"), 0.5).release == ()


def test_a_released_node_makes_room() -> None:
    nodes = [node("a", cordoned=True, reason="gpu-remap-failed"), node("b"), node("c"), node("d")]
    plan = plan_cordons(nodes, report(bad="b", good="acd"), 0.25)
    assert (dict(plan.cordon), plan.release) == ({"b": "gpu-remap-failed"}, ("a",))


def test_mark_and_cordon_are_one_change() -> None:
    nodes = [node("a", cordoned=True, reason="gpu-remap-failed"), node("b"), node("c"), node("d")]
    assert plan_cordons(nodes, report(bad="b", good="acd"), 0.5).changes == {
        "b": {"metadata": {"labels": {LABEL: "gpu-remap-failed"}}, "spec": {"unschedulable": True}},
        "a": {"metadata": {"labels": {LABEL: None}}, "spec": {"unschedulable": None}},
    }


def test_the_share_is_the_number_that_was_meant() -> None:
    names = [f"n{number}" for number in range(100)]
    plan = plan_cordons([node(name) for name in names], report(gone=names), 0.29)
    assert len(plan.cordon) == 29


def test_a_node_that_a_person_took_back_makes_no_room() -> None:
    nodes = [node("a", reason="gpu-remap-failed"), *(node(name) for name in "bcd")]
    plan = plan_cordons(nodes, report(bad="bcd", good="a"), 0.25)
    assert plan.release == ("a",)
    assert list(plan.cordon) == ["b"]


# Released only when it is known to be well


def cordoned_for(reason: str, box: Box) -> tuple[tuple[str, ...], dict[str, str]]:
    """What is released and what is kept of a node "a" that was cordoned for that check."""
    nodes = [node("a", cordoned=True, reason=reason), *(node(name) for name in "bcdefghi")]
    plan = plan_cordons(nodes, HealthReport((box.report(),)), 0.2)
    return plan.release, dict(plan.kept)


def test_a_check_that_was_not_made_releases_nothing() -> None:
    well = healthy(2, "a")
    assert cordoned_for("nccl-all-reduce", well) == ((), {"a": "nccl-all-reduce is SKIP"})
    unread = well.command("kernel_log", None).command("dmesg", None)
    assert cordoned_for("gpu-xid", unread) == ((), {"a": "gpu-xid is UNKNOWN"})
    assert cordoned_for("gpu-xid", well) == (("a",), {})
    assert cordoned_for("a-check-of-another-version", well)[0] == ()


def test_a_driver_that_was_not_asked_releases_nothing() -> None:
    unasked = healthy(2, "a").command("nvidia_smi_xml", CommandResult(not_started=True))
    released, kept = cordoned_for("gpu-xid", unasked)
    assert (released, set(kept)) == ((), {"a"})


def test_a_warning_is_not_well_but_for_that_of_the_cordon_itself() -> None:
    day_ago = datetime.fromtimestamp(NOW - 86400 - 3600, UTC).strftime("%Y-%m-%dT%H:%M:%S+0000")
    xid = f"{day_ago} a kernel: NVRM: Xid (PCI:0000:18:00): 119, pid=1, timeout"
    box = replace(healthy(2, "a"), evidence=replace(healthy(2, "a").evidence, uptime_s=900_000.0)).log(xid)
    assert box.verdict("gpu-xid") is Verdict.WARN
    assert cordoned_for("gpu-xid", box) == ((), {"a": "gpu-xid is WARN"})
    ready = healthy(2, "a").expecting(control_plane=True).output("kubernetes_nodes", "a\ttrue\t{}\t{}\tTrue\n")
    assert ready.verdict("kubernetes-ready") is Verdict.WARN
    assert cordoned_for("kubernetes-ready", ready)[0] == ("a",)


def test_a_machine_that_was_silent_is_released_when_it_answers() -> None:
    assert cordoned_for("machine-reachable", healthy(2, "a")) == (("a",), {})


# Who goes first


def test_configuration_alone_cordons_nothing() -> None:
    swap = healthy(2, "a").paths({"/proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n/dev/sda2 partition 8 0 1"})
    assert swap.verdict("host-swap") is Verdict.FAIL
    plan = plan_cordons([node(name) for name in "abcde"], HealthReport((swap.report(),)), 0.2)
    assert (dict(plan.cordon), plan.refused) == ({}, ())


def test_the_gravest_go_first() -> None:
    reset = healthy(2, "a").gpus({**h100(0), "gpu_recovery_action": "GPU Reset"}, h100(1))
    replaced = gpu_change("remapped_rows/remapped_row_failure", "Yes")(healthy(2, "b"))
    plan = plan_cordons([node(name) for name in "abcde"], HealthReport((reset.report(), replaced.report())), 0.2)
    assert (dict(plan.cordon), plan.refused) == ({"b": "gpu-remap-failed"}, ("a",))


def test_of_a_few_nodes_one_may_be_out() -> None:
    nodes = [node(name) for name in "abcd"]
    assert dict(plan_cordons(nodes, report(bad="bc"), 0.2).cordon) == {"b": "gpu-remap-failed"}
    assert dict(plan_cordons(nodes, report(bad="bc"), 0).cordon) == {}
    assert dict(plan_cordons([node("a", cordoned=True), *nodes[1:]], report(bad="bc"), 0.2).cordon) == {}
