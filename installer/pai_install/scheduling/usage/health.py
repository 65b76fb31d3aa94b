"""Which guarantees cannot be met now, because of which machines. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from pai_install.json_schema import Count
from pai_install.kube.objects import JsonObject, child, conditions, quantities, state_of, text
from pai_install.scheduling.model import Scheduling, Supply
from pai_install.scheduling.usage.amounts import resource_of


@dataclass(frozen=True, slots=True)
class Lack:
    """A machine that does not offer all its units. why: in words."""

    machine: str
    units: Count
    why: str


@dataclass(frozen=True, slots=True)
class Unmet:
    """Units of an SKU that virtual clusters are guaranteed, together, and that machines do not have now."""

    sku: str
    clusters: Annotated[tuple[str, ...], Field(serialization_alias="virtual_clusters")]
    units: Count
    machines: tuple[Lack, ...]

    def __str__(self) -> str:
        """In words."""
        names = " and ".join(filter(None, (", ".join(self.clusters[:-1]), self.clusters[-1])))
        verb = "lacks" if len(self.clusters) == 1 else "lack, together,"
        return f"{names} {verb} {self.units} {self.sku}: " + "; ".join(f"{it.machine} {it.why}" for it in self.machines)


def unmet(
    scheduling: Scheduling, nodes: Iterable[JsonObject], absent: Mapping[str, tuple[str, ...]]
) -> tuple[Unmet, ...]:
    """nodes: as the API gives them. absent: SKU -> machines that the site says are not there."""
    known = _by_name(nodes)
    return tuple(
        found
        for sku, supply in scheduling.supply.items()
        for found in _of_sku(scheduling, supply, known, absent.get(sku, ()))
    )


def _of_sku(
    scheduling: Scheduling, supply: Supply, nodes: Mapping[str, JsonObject], absent: tuple[str, ...]
) -> Iterator[Unmet]:
    found = _lacks(supply, nodes)
    for lack in found:
        if (owner := scheduling.pinned.get(lack.machine)) is not None:
            yield Unmet(supply.sku, (owner,), lack.units, (lack,))
    shared = tuple(lack for lack in found if lack.machine not in scheduling.pinned)
    shares = {it.name: share.units for it in scheduling.clusters if (share := it.share(supply.sku)) is not None}
    short = sum(shares.values()) - scheduling.free(supply.sku) + sum(lack.units for lack in shared)
    if short > 0 and any(shares.values()):
        away = tuple(Lack(name, supply.units, "is absent") for name in absent)
        yield Unmet(supply.sku, tuple(name for name, units in shares.items() if units), short, (*shared, *away))


def lacks(supply: Supply, nodes: Iterable[JsonObject]) -> tuple[Lack, ...]:
    """Machines of an SKU that do not offer all their units. nodes: as the API gives them."""
    return _lacks(supply, _by_name(nodes))


def _by_name(nodes: Iterable[JsonObject]) -> Mapping[str, JsonObject]:
    return {text(child(node, "metadata").get("name")): node for node in nodes}


def _lacks(supply: Supply, nodes: Mapping[str, JsonObject]) -> tuple[Lack, ...]:
    found = (_lack(supply, name, nodes.get(name)) for name in supply.machines)
    return tuple(lack for lack in found if lack is not None)


def _lack(supply: Supply, machine: str, node: JsonObject | None) -> Lack | None:
    """None for a machine that offers all its units."""
    if node is None:
        return Lack(machine, supply.units, "is no node of the cluster")
    if child(node, "spec").get("unschedulable"):
        return Lack(machine, supply.units, "is cordoned")
    if state_of(conditions(child(node, "status").get("conditions")), "Ready") is not True:
        return Lack(machine, supply.units, "is not Ready")
    offered = _offered(supply, node)
    missing = supply.units - offered
    return Lack(machine, missing, f"offers {offered} of {supply.units}") if missing > 0 else None


def _offered(supply: Supply, node: JsonObject) -> int:
    amount = quantities(child(node, "status").get("allocatable")).get(resource_of(supply), 0.0)
    per_unit = 1.0 if supply.resource else max(supply.cpu_millis, 1) / 1000
    return int(amount / per_unit)
