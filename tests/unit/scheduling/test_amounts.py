"""Amounts as the API server writes them, and what is whose."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_install.documents.quantity import parse_bytes
from pai_install.scheduling import amounts
from pai_install.scheduling.amounts import Amount
from tests.virtual_clusters import CASES, GIBIBYTE, cluster, cpu_only, gpus, pinned, share, site


@pytest.mark.parametrize(
    ("number", "written"), [(0, "0"), (7, "7"), (999, "999"), (1000, "1k"), (2500, "2500"), (3_000_000, "3M")]
)
def test_counts_have_the_largest_unit_that_divides_them(number: int, written: str) -> None:
    assert amounts.count(number) == written


@pytest.mark.parametrize(("millis", "written"), [(0, "0"), (1500, "1500m"), (64_000, "64"), (2_000_000, "2k")])
def test_processors_are_whole_or_thousandths(millis: int, written: str) -> None:
    assert amounts.cpu(millis) == written


@given(st.integers(0, 2**50))
def test_memory_loses_less_than_a_mebibyte(amount: int) -> None:
    written = amounts.memory(amount)
    assert 0 <= amount - parse_bytes(written) < 2**20
    assert re.fullmatch(r"0|[0-9]+(Mi|Gi|Ti|Pi)", written)


def test_a_share_has_its_own_memory_and_lends_the_part_of_it_that_goes_with_the_units() -> None:
    scheduling = cpu_only()
    batch = scheduling.cluster("batch")
    assert amounts.guaranteed(scheduling, batch, "cpu") == Amount(100, 100_000, 300 * GIBIBYTE)
    assert amounts.lent(scheduling, batch, "cpu") == Amount(50, 50_000, 150 * GIBIBYTE)
    assert amounts.borrowed(scheduling, batch, "cpu") == Amount()
    assert amounts.unassigned(scheduling, "cpu") == Amount(71, 71_000, (171 * 4 - 300) * GIBIBYTE)


def test_an_sku_without_a_share_is_neither_lent_nor_borrowed() -> None:
    scheduling = cpu_only()
    batch = scheduling.cluster("batch")
    assert amounts.lent(scheduling, batch, "a100") == Amount()
    assert amounts.borrowed(scheduling, batch, "a100") == Amount()
    assert amounts.borrowed(scheduling, scheduling.cluster("default"), "a100") is None


def test_machines_of_ones_own_count_beside_the_share_and_are_no_one_elses() -> None:
    scheduling = pinned()
    research = scheduling.cluster("research")
    assert amounts.pinned_machines(scheduling, research, "a100") == ("a100-4",)
    assert amounts.owned(scheduling, research, "a100").units == 16
    assert amounts.unassigned(scheduling, "a100").units == 0


@pytest.mark.parametrize("case", CASES)
def test_all_that_is_guaranteed_and_what_is_left_is_what_there_is(case: str) -> None:
    scheduling = CASES[case]()
    for sku, supply in scheduling.supply.items():
        given_away = sum((amounts.owned(scheduling, it, sku) for it in scheduling.clusters), Amount())
        assert (given_away + amounts.unassigned(scheduling, sku)).units == supply.total


def test_more_than_there_is_leaves_nothing() -> None:
    supply = gpus("a100", 1)
    scheduling = site(supply, clusters=(cluster("a", share(supply, 8)), cluster("b", share(supply, 8))))
    assert amounts.unassigned(scheduling, "a100") == Amount()
