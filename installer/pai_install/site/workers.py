"""The capacity of a site's workers for jobs, by SKU. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pai_install.site.model import Site, Sku

# percent of a machine's cores and memory that jobs get; the rest is the system's
OFFERED = 90


@dataclass(frozen=True, slots=True)
class Workers:
    """The workers of one SKU, and the capacity of one of them for jobs.

    resource: of its devices, or "". units: devices, or cores without devices. cpu_millis, memory_bytes: share of one
    unit. machine_millis, machine_bytes: cores and memory of one machine, including the system's part. present, absent:
    names, in the order of the layout.
    """

    sku: str
    resource: str
    units: int
    cpu_millis: int
    memory_bytes: int
    machine_millis: int
    machine_bytes: int
    present: tuple[str, ...]
    absent: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, the present ones first."""
        return (*self.present, *self.absent)

    @property
    def unit(self) -> str:
        """Returns the name of a unit, as in the keys of a quota."""
        return "devices" if self.resource else "cores"


def workers_of(site: Site) -> Mapping[str, Workers]:
    """Returns SKU -> its workers, in the order of the layout, without SKUs that have none."""
    present: dict[str, list[str]] = {name: [] for name in site.skus}
    absent: dict[str, list[str]] = {name: [] for name in site.skus}
    for machine in site.machines:
        if machine.worker and machine.sku in site.skus:
            (absent if machine.absent else present)[machine.sku].append(machine.hostname)
    return {
        name: _workers(sku, tuple(present[name]), tuple(absent[name]))
        for name, sku in site.skus.items()
        if present[name] or absent[name]
    }


def _workers(sku: Sku, present: tuple[str, ...], absent: tuple[str, ...]) -> Workers:
    units = sku.device.count if sku.device else max(1, sku.vcore * OFFERED // 100)
    return Workers(
        sku=sku.name,
        resource=sku.device.type if sku.device else "",
        units=units,
        cpu_millis=sku.vcore * OFFERED * 10 // units if sku.device else min(1000, sku.vcore * OFFERED * 10 // units),
        memory_bytes=sku.mem_bytes * OFFERED // 100 // units,
        machine_millis=sku.vcore * 1000,
        machine_bytes=sku.mem_bytes,
        present=present,
        absent=absent,
    )
