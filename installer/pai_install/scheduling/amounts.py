"""Amounts of a virtual cluster, and how Kubernetes writes them. Pure.

Written as the API server gives them back: an amount in another notation would be seen as a change at every run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pai_install.documents.quantity import format_bytes
from pai_install.scheduling.model import Scheduling, Supply, VirtualCluster

CPU, MEMORY = "cpu", "memory"
_MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class Amount:
    """Units of an SKU with the processors and the memory that go with them."""

    units: int = 0
    cpu_millis: int = 0
    memory_bytes: int = 0

    def __add__(self, other: Amount) -> Amount:
        """Both together."""
        return Amount(
            self.units + other.units, self.cpu_millis + other.cpu_millis, self.memory_bytes + other.memory_bytes
        )

    def resources(self, supply: Supply, devices: Iterable[str] = ()) -> Mapping[str, str]:
        """Resource -> quantity: of each of `devices`, the SKU's own among them, of cpu and of memory."""
        # Kueue refuses a flavor that does not name each resource of its group, also with 0.
        names = [*devices] or [name for name in (supply.resource,) if name]
        found = {name: count(self.units if name == supply.resource else 0) for name in names}
        return {**found, CPU: cpu(self.cpu_millis), MEMORY: memory(self.memory_bytes)}


def of_units(supply: Supply, units: int) -> Amount:
    """Returns the amount of these units of an SKU with their shares of other resources."""
    return Amount(units, units * supply.cpu_millis, units * supply.memory_bytes)


def guaranteed(scheduling: Scheduling, cluster: VirtualCluster, sku: str) -> Amount:
    """Returns a virtual cluster's guarantee of an SKU, without machines pinned to it."""
    share = cluster.share(sku)
    if share is None:
        return Amount()
    return Amount(share.units, share.units * scheduling.supply[sku].cpu_millis, share.memory_bytes)


def lent(scheduling: Scheduling, cluster: VirtualCluster, sku: str) -> Amount:
    """The most of its guarantee that others may use."""
    share = cluster.share(sku)
    if share is None or not share.units:
        return Amount()
    part = share.memory_bytes * share.lend // share.units
    return Amount(share.lend, share.lend * scheduling.supply[sku].cpu_millis, part)


def borrowed(scheduling: Scheduling, cluster: VirtualCluster, sku: str) -> Amount | None:
    """Returns the maximum beyond its guarantee. None: all idle units."""
    share = cluster.share(sku)
    if share is not None and share.borrow is None:
        return None
    return of_units(scheduling.supply[sku], share.borrow or 0 if share is not None else 0)


def pinned_machines(scheduling: Scheduling, cluster: VirtualCluster, sku: str) -> tuple[str, ...]:
    """Machines of an SKU that are a virtual cluster's own, in the order of the layout."""
    return tuple(machine for machine in scheduling.supply[sku].machines if machine in cluster.pinned)


def pinned(scheduling: Scheduling, cluster: VirtualCluster, sku: str) -> Amount:
    """Returns a virtual cluster's amount on its pinned machines of an SKU."""
    supply = scheduling.supply[sku]
    return of_units(supply, supply.units * len(pinned_machines(scheduling, cluster, sku)))


def owned(scheduling: Scheduling, cluster: VirtualCluster, sku: str) -> Amount:
    """All that a virtual cluster is guaranteed of an SKU, on machines of its own or of all."""
    return guaranteed(scheduling, cluster, sku) + pinned(scheduling, cluster, sku)


def unassigned(scheduling: Scheduling, sku: str) -> Amount:
    """Returns the amount of an SKU without a guarantee, or zero if the guarantees exceed the supply."""
    all_of_it = of_units(scheduling.supply[sku], scheduling.free(sku))
    given = sum((guaranteed(scheduling, cluster, sku) for cluster in scheduling.clusters), Amount())
    left = (
        all_of_it.units - given.units,
        all_of_it.cpu_millis - given.cpu_millis,
        all_of_it.memory_bytes - given.memory_bytes,
    )
    return Amount(*(max(0, amount) for amount in left))


def devices_of(scheduling: Scheduling) -> tuple[str, ...]:
    """Resources of the devices that the site has, each once."""
    return tuple(dict.fromkeys(supply.resource for supply in scheduling.supply.values() if supply.resource))


def held_cells(devices: int, cpu_millis: int, memory_bytes: int, unit: tuple[int, int]) -> int:
    """Returns the cells that a pod holds: enough for its devices, processors, and memory, at least one.

    unit: thousandths of a core and bytes of memory per cell.
    """
    parts = ((cpu_millis, unit[0]), (memory_bytes, unit[1]))
    return max(devices, *(-(-requested // of_one) for requested, of_one in parts if of_one), 1)


def count(number: int) -> str:
    """12 -> "12", 2000 -> "2k": the largest unit that divides it."""
    for unit in ("", "k", "M", "G"):
        if not number or number % 1000:
            return f"{number}{unit}"
        number //= 1000
    return f"{number}T"


def cpu(millis: int) -> str:
    """Processors: 1500 -> "1500m", 64000 -> "64"."""
    return f"{millis}m" if millis % 1000 else count(millis // 1000)


def memory(amount: int) -> str:
    """Bytes, rounded down to whole mebibytes: 68719476736 -> "64Gi"."""
    return format_bytes(amount // _MEBIBYTE * _MEBIBYTE)
