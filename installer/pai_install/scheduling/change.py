"""The effects of a change of virtual clusters on their jobs. Pure.

Guarantees include the pinned machines here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field

from pai_install.json_schema import Count
from pai_install.scheduling.amounts import owned, pinned_machines
from pai_install.scheduling.model import Scheduling, VirtualCluster

_ClusterName = Annotated[str, Field(serialization_alias="virtual_cluster")]
ChangeKind = Literal["appears", "goes", "grows", "shrinks", "differs"]


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """The change of a virtual cluster's units of an SKU. `differs`: the same number with other machines, limits, or
    rules.

    sku: empty if the virtual cluster has none before and after.
    """

    cluster: _ClusterName
    sku: str
    kind: ChangeKind
    before: Count
    after: Count

    def __str__(self) -> str:
        """In words, e.g. "research: a100 grows from 8 to 16"."""
        what = f"{self.cluster}: {self.sku}" if self.sku else self.cluster
        if self.kind == "differs":
            return f"{what} stays at {self.after}, its rules change"
        if self.kind in ("appears", "goes"):
            number = self.after if self.kind == "appears" else self.before
            return f"{what} {self.kind}" + (f" with {number}" if self.sku else "")
        return f"{what} {self.kind} from {self.before} to {self.after}"


@dataclass(frozen=True, slots=True)
class Running:
    """Units of an SKU that jobs of a virtual cluster use now."""

    cluster: str
    sku: str
    units: int


@dataclass(frozen=True, slots=True)
class Affected:
    """A virtual cluster with running jobs that a change affects. units: number of units that lose their guarantee."""

    cluster: _ClusterName
    sku: str
    units: Count
    removed: bool

    def __str__(self) -> str:
        """In words, for who decides whether to go on."""
        if self.removed:
            return (
                f"{self.cluster} is to go, and its jobs use {self.units} {self.sku}: wait for them, or end them first"
            )
        return (
            f"{self.cluster}: its jobs use {self.units} {self.sku} beyond what it is guaranteed then; "
            "they keep them until the one who is guaranteed them takes them back"
        )


def changes(before: Scheduling, after: Scheduling) -> tuple[QuotaChange, ...]:
    """Returns the differences per virtual cluster and SKU: first existing ones in order, then new ones."""
    names = dict.fromkeys(cluster.name for cluster in (*before.clusters, *after.clusters))
    return tuple(change for name in names for change in _of_cluster(before, after, name))


def _of_cluster(before: Scheduling, after: Scheduling, name: str) -> Iterator[QuotaChange]:
    old, new = _cluster(before, name), _cluster(after, name)
    skus = dict.fromkeys((*before.supply, *after.supply))
    amounts = {sku: (_units(before, old, sku), _units(after, new, sku)) for sku in skus}
    had = {sku: (was, becomes) for sku, (was, becomes) in amounts.items() if was or becomes}
    for sku, (was, becomes) in had.items():
        kind = _kind(old, new, was, becomes)
        if kind != "differs" or _rules(before, old, sku) != _rules(after, new, sku):
            yield QuotaChange(name, sku, kind, was, becomes)
    if not had and _kind(old, new, 0, 0) in ("appears", "goes"):
        yield QuotaChange(name, "", _kind(old, new, 0, 0), 0, 0)


def _kind(old: VirtualCluster | None, new: VirtualCluster | None, was: int, becomes: int) -> ChangeKind:
    if old is None:
        return "appears"
    if new is None:
        return "goes"
    if was == becomes:
        return "differs"
    return "grows" if becomes > was else "shrinks"


def _cluster(scheduling: Scheduling, name: str) -> VirtualCluster | None:
    return next((cluster for cluster in scheduling.clusters if cluster.name == name), None)


def _units(scheduling: Scheduling, cluster: VirtualCluster | None, sku: str) -> int:
    if cluster is None or sku not in scheduling.supply:
        return 0
    return owned(scheduling, cluster, sku).units


def _rules(scheduling: Scheduling, cluster: VirtualCluster | None, sku: str) -> tuple[object, ...]:
    """Returns the other rules for jobs on an SKU: its share, its own machines, and all rules of the cluster."""
    if cluster is None:
        return ()
    own = pinned_machines(scheduling, cluster, sku) if sku in scheduling.supply else ()
    return cluster.share(sku), own, replace(cluster, shares=(), pinned=(), groups=())


def affected(found: Iterable[QuotaChange], usage: Iterable[Running]) -> tuple[Affected, ...]:
    """Returns virtual clusters with running jobs that lose their guarantee.

    Jobs that borrow already are not affected, unless their virtual cluster is removed.
    """
    lines = tuple(found)
    gone = {change.cluster for change in lines if change.kind == "goes"}
    of_what = {(change.cluster, change.sku): change for change in lines}
    losses = (_loss(it, gone, of_what.get((it.cluster, it.sku))) for it in usage)
    return tuple(loss for loss in losses if loss.units > 0)


def _loss(running: Running, gone: Collection[str], change: QuotaChange | None) -> Affected:
    """Returns the lost guarantee, or all used units if the virtual cluster is removed."""
    if running.cluster in gone:
        return Affected(running.cluster, running.sku, running.units, removed=True)
    # Units beyond the old guarantee were borrowed before, and are no loss of this change.
    units = min(running.units, change.before) - change.after if change is not None else 0
    return Affected(running.cluster, running.sku, units, removed=False)
