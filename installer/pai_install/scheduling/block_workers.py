"""The workers of HiveD's block by the names of its SKUs: a machine has the devices of its cells. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pai_install.documents.quantity import parse_bytes
from pai_install.site.hived_cells import Cell, hived_of, tops
from pai_install.site.model import Site
from pai_install.site.services.hived import HivedConfig, SkuShare
from pai_install.site.workers import OFFERED, Workers, workers_of


def job_workers(site: Site) -> Mapping[str, Workers]:
    """SKU as jobs name it -> its workers: by HiveD's block where it counts, else by the layout."""
    config = hived_of(site)
    return workers_of(site) if config is None else block_workers(site, config)


def block_workers(site: Site, config: HivedConfig) -> Mapping[str, Workers]:
    """SKU of the block -> its workers. Cores and memory of a unit are those of skuTypes, where it has them.

    Where machines of one SKU differ, units are those of the largest, cores and memory those of the smallest.
    """
    machines = {name: workers for workers in workers_of(site).values() for name in workers.names}
    found: dict[str, _Machines] = {}
    for top in tops(config):
        for node in top.nodes():
            if node.node in machines:
                found.setdefault(top.chain.leaf, _Machines()).add(node, machines[node.node])
    shares = {**config.physical_cluster.gpu_types, **config.physical_cluster.sku_types}
    return {sku: one.workers(sku, shares.get(sku)) for sku, one in found.items()}


@dataclass
class _Machines:
    """The machines of one SKU of the block, each with its workers of the layout."""

    units: int = 0
    of_layout: dict[str, Workers] = field(default_factory=dict)

    def add(self, node: Cell, workers: Workers) -> None:
        self.units = max(self.units, node.leaves)
        self.of_layout.setdefault(node.node, workers)

    def workers(self, sku: str, share: SkuShare | None) -> Workers:
        layout = list(self.of_layout.values())
        # A job that fits the smallest machine fits all of them.
        millis, size = min(one.machine_millis for one in layout), min(one.machine_bytes for one in layout)
        has_devices = share is None or bool(share.gpu or share.gpu_type)
        found = Workers(
            sku=sku,
            resource=next((one.resource for one in layout if one.resource), "") if has_devices else "",
            units=self.units,
            cpu_millis=millis * OFFERED // 100 // self.units,
            memory_bytes=size * OFFERED // 100 // self.units,
            machine_millis=millis,
            machine_bytes=size,
            present=tuple(name for name, one in self.of_layout.items() if name in one.present),
            absent=tuple(name for name, one in self.of_layout.items() if name in one.absent),
        )
        if share is None:
            return found
        cpu = share.cpu * 1000 if share.cpu else found.cpu_millis
        return replace(found, cpu_millis=cpu, memory_bytes=_bytes(share.memory) or found.memory_bytes)


def _bytes(written: str | None) -> int:
    """Returns the bytes of a quantity, or 0 if it is missing or invalid."""
    try:
        return parse_bytes(written or "")
    except ValueError:
        return 0
