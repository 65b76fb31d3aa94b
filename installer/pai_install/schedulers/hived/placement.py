"""Whether the cells of a virtual cluster could ever hold the pods that HiveD places together. Pure.

HiveD places such a group in one chain of cells, or in one pinned cell, and each pod on one machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pai_install.schedulers.hived.cells import hived_block
from pai_install.scheduling.hived_block import pins_of
from pai_install.scheduling.model import Scheduling
from pai_install.site.hived_cells import Chain, chains_of, tops, virtual_path
from pai_install.site.services.hived import HivedConfig
from pai_install.system.words import plural


@dataclass(frozen=True, slots=True)
class PodGroup:
    """Pods that are placed together. pods: cells of one pod -> number of such pods. sku, pin: empty for any."""

    pods: Counter[int]
    sku: str = ""
    pin: str = ""


@dataclass(frozen=True, slots=True)
class CellPool:
    """Cells that one group may have. parts: size of a machine, or of a smaller cell -> number."""

    name: str
    sku: str
    parts: Counter[int]

    @property
    def total(self) -> int:
        """Cells of all parts."""
        return sum(size * number for size, number in self.parts.items())

    def holds(self, group: PodGroup) -> bool:
        """Whether all pods fit at the same time. The largest pods are placed first."""
        free = Counter(self.parts)
        for cells in sorted(group.pods, reverse=True):
            left = group.pods[cells]
            for size in sorted(size for size in free if size >= cells):
                taken = min(free[size], -(-left // (size // cells)))
                placed = min(left, taken * (size // cells))
                free[size] -= taken
                full, rest = divmod(placed, size // cells)
                free[size % cells] += full
                if rest:
                    free[size - rest * cells] += 1
                left -= placed
            if left:
                return False
        return True

    def __str__(self) -> str:
        """The room in words."""
        number = sum(self.parts.values())
        return f"{self.total} {self.sku} in {plural(number, 'part')} of {self.name}"


def configuration(scheduling: Scheduling) -> HivedConfig:
    """The cells that HiveD has for a site."""
    block = scheduling.block if scheduling.block is not None else hived_block(scheduling)
    return HivedConfig.model_validate(dict(block))


def guaranteed_cells(scheduling: Scheduling) -> Iterator[str]:
    """The cells of each virtual cluster of OpenPAI's block, a line each. Without the block there are none."""
    if scheduling.block is None:
        return
    config = configuration(scheduling)
    chains, pins = chains_of(config), pins_of(config)
    for name, cluster in config.virtual_clusters.items():
        for one in cluster.virtual_cells:
            way = virtual_path(chains, one.cell_type or "")
            if way is not None and one.cell_number:
                yield f"{name}: {one.cell_number} of {one.cell_type}, each {_size(way.chain, way.depth)}"
        for pin in cluster.pinned_cells:
            cell = pins.get(pin.pinned_cell_id or "")
            if cell is not None:
                yield f"{name}: pinned cell {pin.pinned_cell_id}, {_size(cell.chain, cell.depth)}"


def _size(chain: Chain, depth: int) -> str:
    if depth > chain.node:
        return f"{chain.leaves(depth)} {chain.leaf} of one machine"
    return f"{plural(chain.machines(depth), 'machine')} with {chain.leaves(chain.node)} {chain.leaf}"


def pinned_cells(scheduling: Scheduling, cluster: str) -> dict[str, CellPool]:
    """Name of a pinned cell of a virtual cluster -> its room."""
    config = configuration(scheduling)
    pins, found = pins_of(config), config.virtual_clusters.get(cluster)
    cells = (pins.get(one.pinned_cell_id or "") for one in (found.pinned_cells if found is not None else ()))
    return {
        name: CellPool(name, cell.chain.leaf, _parts(cell.chain, cell.depth, 1))
        for cell in cells
        if cell is not None and (name := cell.spec.pinned_cell_id)
    }


def rooms(scheduling: Scheduling, cluster: str, *, opportunistic: bool) -> Iterator[CellPool]:
    """One room for each chain, without pinned cells. Opportunistic pods may use all machines of a chain."""
    config = configuration(scheduling)
    chains, parts = chains_of(config), {name: Counter[int]() for name in chains_of(config)}
    found = config.virtual_clusters.get(cluster)
    for one in found.virtual_cells if found is not None and not opportunistic else ():
        way = virtual_path(chains, one.cell_type or "")
        if way is not None:
            parts[way.chain.top] += _parts(way.chain, way.depth, one.cell_number or 0)
    for top in tops(config) if opportunistic else ():
        parts[top.chain.top] += Counter({top.chain.leaves(top.chain.node): sum(1 for _ in top.nodes())})
    yield from (CellPool(name, chains[name].leaf, counted) for name, counted in parts.items() if counted.total())


def _parts(chain: Chain, depth: int, number: int) -> Counter[int]:
    if depth > chain.node:
        return Counter({chain.leaves(depth): number})
    return Counter({chain.leaves(chain.node): number * chain.machines(depth)})


def refusal(scheduling: Scheduling, cluster: str, group: PodGroup, *, opportunistic: bool) -> str:
    """Why HiveD can never start a group of pods, or an empty text."""
    if group.pin:
        own = pinned_cells(scheduling, cluster)
        if group.pin not in own:
            return f"{cluster} has no pinned cell {group.pin}. Its pinned cells: {', '.join(own) or 'none'}"
        if opportunistic:
            return f"jobs of priority oppo cannot use pinned cells, and {group.pin} is one"
        candidates = [own[group.pin]]
    else:
        candidates = list(rooms(scheduling, cluster, opportunistic=opportunistic))
    candidates = [one for one in candidates if group.sku in ("", one.sku)]
    if any(one.holds(group) for one in candidates):
        return ""
    pods = " and ".join(f"{plural(number, 'pod')} of {plural(cells, 'cell')}" for cells, number in group.pods.items())
    there = "; ".join(map(str, candidates)) or (f"no cells of {group.sku}" if group.sku else "no cells")
    return f"HiveD cannot place {pods} together: {cluster} has {there}"
