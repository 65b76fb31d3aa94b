"""What a change of virtual clusters does, and to whose jobs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from pai_install.scheduling.amounts import owned
from pai_install.scheduling.change import Affected, QuotaChange, Running, affected, changes
from pai_install.scheduling.model import Scheduling
from tests.unit.scheduling.sites import NAMES, divided_sites
from tests.virtual_clusters import CASES, cluster, gpus, share, site, two_teams

SUPPLY = gpus("a100", 4)


def teams(research: int, product: int, **rules: int) -> Scheduling:
    clusters = (cluster("research", share(SUPPLY, research)), cluster("product", share(SUPPLY, product, **rules)))
    return site(SUPPLY, clusters=clusters)


@pytest.mark.parametrize("case", CASES)
def test_nothing_changed_is_no_change(case: str) -> None:
    assert changes(CASES[case](), CASES[case]()) == ()


def test_a_machine_that_moves_grows_one_and_shrinks_another(snapshot: SnapshotAssertion) -> None:
    found = changes(teams(16, 16), teams(8, 24))
    assert [str(it) for it in found] == snapshot


def test_virtual_clusters_appear_and_go(snapshot: SnapshotAssertion) -> None:
    after = site(SUPPLY, clusters=(cluster("research", share(SUPPLY, 16)), cluster("lab", share(SUPPLY, 8))))
    found = changes(teams(16, 16), after)
    assert [str(it) for it in found] == snapshot


def test_one_without_anything_appears_and_goes_too() -> None:
    bare = site(SUPPLY, clusters=(cluster("guests"),))
    empty = site(SUPPLY, clusters=())
    assert changes(empty, bare) == (QuotaChange("guests", "", "appears", 0, 0),)
    assert str(changes(bare, empty)[0]) == "guests goes"


def test_a_share_of_another_sku_grows_from_nothing() -> None:
    other = gpus("v100", 1)
    before, after = (
        site(SUPPLY, other, clusters=(cluster("research", share(SUPPLY, 8), *more),))
        for more in ((), (share(other, 8),))
    )
    assert changes(before, after) == (QuotaChange("research", "v100", "grows", 0, 8),)


def test_other_limits_of_as_many_units_are_a_change(snapshot: SnapshotAssertion) -> None:
    (found,) = changes(teams(16, 16), teams(16, 16, borrow=0))
    assert (found.cluster, found.kind) == ("product", "differs")
    assert str(found) == snapshot


def test_a_machine_of_ones_own_counts_with_the_share() -> None:
    """As many units as before, on machines that others no longer borrow."""
    before = teams(16, 16)
    after = site(
        SUPPLY,
        clusters=(cluster("research", share(SUPPLY, 8), pinned=("a100-4",)), cluster("product", share(SUPPLY, 16))),
    )
    assert changes(before, after) == (QuotaChange("research", "a100", "differs", 16, 16),)


def test_jobs_beyond_the_new_guarantee_are_affected() -> None:
    found = changes(teams(16, 16), teams(8, 24))
    (one,) = affected(found, [Running("research", "a100", 12), Running("product", "a100", 16)])
    assert one == Affected("research", "a100", 4, removed=False)
    assert str(one).startswith("research: its jobs use 4 a100 beyond what it is guaranteed then")


def test_who_borrowed_before_is_affected_only_by_what_it_loses() -> None:
    found = changes(teams(16, 16), teams(8, 24))
    assert affected(found, [Running("research", "a100", 30)]) == (Affected("research", "a100", 8, removed=False),)


def test_of_one_that_goes_all_jobs_are_affected_also_borrowers(snapshot: SnapshotAssertion) -> None:
    other = gpus("v100", 1)
    before = site(SUPPLY, other, clusters=(cluster("lab", share(SUPPLY, 8)),))
    found = changes(before, site(SUPPLY, other, clusters=()))
    lost = affected(found, [Running("lab", "a100", 3), Running("lab", "v100", 2)])
    assert [(it.sku, it.units, it.removed) for it in lost] == [("a100", 3, True), ("v100", 2, True)]
    assert str(lost[0]) == snapshot


def test_rules_that_change_touch_no_running_job() -> None:
    found = changes(teams(16, 16), teams(16, 16, borrow=0))
    assert affected(found, [Running("product", "a100", 20)]) == ()


@given(divided_sites(), divided_sites())
@settings(max_examples=60, deadline=None)
def test_changes_lead_from_the_one_to_the_other(before: Scheduling, after: Scheduling) -> None:
    told = {(it.cluster, it.sku): it for it in changes(before, after)}
    for name in NAMES:
        for sku in {*before.supply, *after.supply}:
            was, becomes = units(before, name, sku), units(after, name, sku)
            if (name, sku) in told:
                assert (told[name, sku].before, told[name, sku].after) == (was, becomes)
            else:
                assert was == becomes


@given(divided_sites(), divided_sites())
@settings(max_examples=60, deadline=None)
def test_the_way_back_is_the_opposite(before: Scheduling, after: Scheduling) -> None:
    opposite = {"appears": "goes", "goes": "appears", "grows": "shrinks", "shrinks": "grows", "differs": "differs"}
    forth = {(it.cluster, it.sku, it.kind, it.before, it.after) for it in changes(before, after)}
    back = {(it.cluster, it.sku, opposite[it.kind], it.after, it.before) for it in changes(after, before)}
    assert forth == back


@given(divided_sites(), divided_sites(), st.integers(0, 40))
@settings(max_examples=60, deadline=None)
def test_affected_are_exactly_those_whose_jobs_were_within_and_are_no_longer(
    before: Scheduling, after: Scheduling, used: int
) -> None:
    usage = [Running(it.name, sku, used) for it in before.clusters for sku in before.supply]
    lost = {(it.cluster, it.sku): it.units for it in affected(changes(before, after), usage)}
    names = {it.name for it in after.clusters}
    for it in usage:
        was, becomes = units(before, it.cluster, it.sku), units(after, it.cluster, it.sku)
        expected = used if it.cluster not in names else max(0, min(used, was) - becomes)
        assert lost.get((it.cluster, it.sku), 0) == expected


def units(scheduling: Scheduling, name: str, sku: str) -> int:
    found = [it for it in scheduling.clusters if it.name == name]
    return owned(scheduling, found[0], sku).units if found and sku in scheduling.supply else 0


def test_a_changed_group_is_a_change_of_rules() -> None:
    before = two_teams()
    clusters = tuple(replace(it, namespaces=("vision",)) for it in before.clusters)
    assert {it.kind for it in changes(before, replace(before, clusters=clusters))} == {"differs"}
