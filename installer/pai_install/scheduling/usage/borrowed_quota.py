"""The lenders of borrowed units. Pure.

No scheduler records them. So units without a guarantee count as borrowed first, then idle lent units of each virtual
cluster in proportion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pai_install.scheduling.model import Scheduling
from pai_install.scheduling.quota_rules import QuotaRules
from pai_install.scheduling.usage.model import Use


def lent_of(scheduling: Scheduling, uses: Iterable[Use], rules: QuotaRules) -> Mapping[tuple[str, str], int]:
    """Returns (virtual cluster, SKU) -> units of its idle guarantee that others use. Virtual clusters that lend nothing
    are omitted.
    """
    uses_seen = tuple(uses)
    found: dict[tuple[str, str], int] = {}
    for sku in scheduling.supply:
        offers = _offers(scheduling, sku, tuple(use for use in uses_seen if use.sku == sku), rules)
        wanted = sum(use.borrowed for use in uses_seen if use.sku == sku) - _unassigned(scheduling, sku)
        parts = _divided(max(0, wanted), offers)
        found |= {(name, sku): units for name, units in parts.items() if units}
    return found


def _unassigned(scheduling: Scheduling, sku: str) -> int:
    given = sum(share.units for cluster in scheduling.clusters if (share := cluster.share(sku)) is not None)
    return max(0, scheduling.free(sku) - given)


def _offers(scheduling: Scheduling, sku: str, uses: tuple[Use, ...], rules: QuotaRules) -> Mapping[str, int]:
    """Returns the idle lent units of each virtual cluster, unlimited if only oppo jobs borrow."""
    kept = {use.cluster: use.kept for use in uses}
    shares = {cluster.name: share for cluster in scheduling.clusters if (share := cluster.share(sku)) is not None}
    idle = {name: max(0, share.units - kept.get(name, 0)) for name, share in shares.items()}
    if rules.lends_to_oppo:
        return idle
    return {name: min(idle[name], share.lend) for name, share in shares.items()}


def _divided(wanted: int, offers: Mapping[str, int]) -> Mapping[str, int]:
    """Returns the division of the wanted units within the offers. The first ones get the remainder."""
    total = sum(offers.values())
    if not total:
        return {}
    wanted = min(wanted, total)
    parts = {name: wanted * offer // total for name, offer in offers.items()}
    for name, offer in offers.items():
        if sum(parts.values()) < wanted and parts[name] < offer:
            parts[name] += 1
    return parts
