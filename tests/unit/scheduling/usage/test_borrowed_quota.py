"""Whose idle guarantees are lent, for random sites and uses."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pai_install.scheduling.model import Scheduling
from pai_install.scheduling.quota_rules import QuotaRules
from pai_install.scheduling.usage.amounts import use_of
from pai_install.scheduling.usage.borrowed_quota import lent_of
from pai_install.scheduling.usage.model import Use
from tests.unit.scheduling.sites import divided_sites
from tests.virtual_clusters import cluster, gpus, share, site

RULES = QuotaRules(lends=True)


@st.composite
def used_sites(draw: st.DrawFn) -> tuple[Scheduling, tuple[Use, ...]]:
    """A site whose jobs use what its scheduler may give them: what is lent or no one's, and no more."""
    scheduling = draw(divided_sites())
    uses = []
    for sku in scheduling.supply:
        shares = {it.name: found for it in scheduling.clusters if (found := it.share(sku)) is not None}
        kept = {name: draw(st.integers(0, found.units)) for name, found in shares.items()}
        spare = scheduling.free(sku) - sum(found.units for found in shares.values())
        spare += sum(min(found.units - kept[name], found.lend) for name, found in shares.items())
        for it in scheduling.clusters:
            most = spare if kept.get(it.name, 0) == (shares[it.name].units if it.name in shares else 0) else 0
            more = draw(st.integers(0, most))
            spare -= more
            uses.append(use_of(it, sku, kept.get(it.name, 0) + more, 0))
    return scheduling, tuple(uses)


@given(used_sites())
def test_what_is_lent_is_what_is_borrowed_beyond_what_is_no_ones(found: tuple[Scheduling, tuple[Use, ...]]) -> None:
    scheduling, uses = found
    lent = lent_of(scheduling, uses, RULES)
    for sku in scheduling.supply:
        of_sku = [use for use in uses if use.sku == sku]
        shares = {it.name: share for it in scheduling.clusters if (share := it.share(sku)) is not None}
        idle = {name: share.units - use.kept for use in of_sku for name, share in shares.items() if name == use.cluster}
        borrowed = sum(use.borrowed for use in of_sku)
        unassigned = scheduling.free(sku) - sum(share.units for share in shares.values())
        assert all(use.units == use.kept + use.own + use.borrowed for use in of_sku)
        assert borrowed <= sum(idle.values()) + unassigned
        assert sum(lent.get((name, sku), 0) for name in shares) == max(0, borrowed - unassigned)
        assert all(lent.get((name, sku), 0) <= min(idle[name], share.lend) for name, share in shares.items())


@given(divided_sites(), st.lists(st.integers(0, 100), min_size=4, max_size=4))
def test_no_one_lends_more_than_is_idle_whatever_the_scheduler_says(scheduling: Scheduling, amounts: list[int]) -> None:
    told = [
        use_of(it, sku, amount, 0)
        for it, amount in zip(scheduling.clusters, amounts, strict=False)
        for sku in scheduling.supply
    ]
    for (name, sku), units in lent_of(scheduling, told, RULES).items():
        share = scheduling.cluster(name).share(sku)
        assert share is not None
        assert 0 < units <= share.lend


def test_lenders_share_in_proportion_and_what_is_no_ones_goes_first() -> None:
    supply = gpus("a100", 4)
    clusters = (
        cluster("a", share(supply, 12)),
        cluster("b", share(supply, 12, lend=4)),
        cluster("c", share(supply, 4)),
    )
    made = site(supply, clusters=clusters)
    assert lent_of(made, [use_of(clusters[2], "a100", 8, 0)], RULES) == {}
    assert lent_of(made, [use_of(clusters[2], "a100", 16, 0)], RULES) == {("a", "a100"): 6, ("b", "a100"): 2}
