"""Cordoning: the sick ones, not too many, never a person's."""

from __future__ import annotations

from collections.abc import Sequence

from pai_install.health.cordon import LABEL, NODES_QUERY, ClusterNode, parse_nodes, plan_cordons
from pai_install.health.report import HealthReport

from .machines import gpu_change, healthy


def report(*, bad: Sequence[str] = (), good: Sequence[str] = (), gone: Sequence[str] = ()) -> HealthReport:
    machines = [gpu_change("remapped_rows/remapped_row_failure", "Yes")(healthy(2, name)).report() for name in bad]
    machines += [healthy(2, name).report() for name in good]
    return HealthReport(tuple(machines), dict.fromkeys(gone, "no route"))


def node(name: str, *, cordoned: bool = False, ours: bool = False) -> ClusterNode:
    return ClusterNode(name, cordoned, ours)


def test_nodes_are_read() -> None:
    text = "a\ttrue\tgpu-xid\nb\t\t\nc\ttrue\t\nbroken\n"
    assert parse_nodes(text) == (node("a", cordoned=True, ours=True), node("b"), node("c", cordoned=True))
    assert LABEL in NODES_QUERY.argv[-1]


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
    nodes = [node("a", cordoned=True, ours=True), node("b")]
    assert plan_cordons(nodes, report(good="ab"), 0.5).release == ("a",)
    assert plan_cordons(nodes, report(bad="a", good="b"), 0.5).release == ()
    assert plan_cordons(nodes, report(good="b"), 0.5).release == ()
    assert plan_cordons(nodes, report(good="b", gone="a"), 0.5).release == ()


def test_a_released_node_makes_room() -> None:
    nodes = [node("a", cordoned=True, ours=True), node("b"), node("c"), node("d")]
    plan = plan_cordons(nodes, report(bad="b", good="acd"), 0.25)
    assert (dict(plan.cordon), plan.release) == ({"b": "gpu-remap-failed"}, ("a",))


def test_label_comes_before_the_cordon_and_goes_after_it() -> None:
    nodes = [node("a", cordoned=True, ours=True), node("b"), node("c"), node("d")]
    calls = plan_cordons(nodes, report(bad="b", good="acd"), 0.5).calls
    assert [call.argv for call in calls] == [
        ("label", "node", "b", f"{LABEL}=gpu-remap-failed", "--overwrite"),
        ("cordon", "b"),
        ("uncordon", "a"),
        ("label", "node", "a", f"{LABEL}-"),
    ]
    assert not any(call.may_fail for call in calls)


def test_the_share_is_the_number_that_was_meant() -> None:
    names = [f"n{number}" for number in range(100)]
    plan = plan_cordons([node(name) for name in names], report(gone=names), 0.29)
    assert len(plan.cordon) == 29


def test_a_node_that_a_person_took_back_makes_no_room() -> None:
    nodes = [node("a", ours=True), *(node(name) for name in "bcd")]
    plan = plan_cordons(nodes, report(bad="bcd", good="a"), 0.25)
    assert plan.release == ("a",)
    assert list(plan.cordon) == ["b"]
