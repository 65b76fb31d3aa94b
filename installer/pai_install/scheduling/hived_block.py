"""The guarantees of HiveD's block in units of SKUs and whole machines, and settings without a counterpart. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pai_install.scheduling.model import Share
from pai_install.site.hived_cells import Cell, Chain, chains_of, tops, virtual_path
from pai_install.site.model import Site
from pai_install.site.services.hived import HivedCluster, HivedConfig
from pai_install.site.workers import Workers, workers_of
from pai_install.system.words import plural


@dataclass(frozen=True, slots=True)
class Guaranteed:
    """The guarantees of a virtual cluster in the block."""

    name: str
    shares: tuple[Share, ...]
    pinned: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Request:
    """Units of an SKU. machines: how many whole ones they are, 0 where they are a part of one."""

    sku: str
    units: int
    machines: int


def guarantees(site: Site, config: HivedConfig, workers: Mapping[str, Workers] | None = None) -> Iterator[Guaranteed]:
    """Yields the guarantees of each virtual cluster in a valid block, by the machine types of the layout.

    workers: from `block_workers`, to use the names of the block instead of the layout's.
    """
    block = _Block(site, config, workers)
    for name, cluster in config.virtual_clusters.items():
        requested = (*block.of_cells(cluster), *block.of_parts(cluster))
        yield Guaranteed(name, tuple(_shares(requested, block.workers)), tuple(block.pinned(cluster)))


def _shares(requests: tuple[_Request, ...], workers: Mapping[str, Workers]) -> Iterator[Share]:
    """Yields one share per SKU. HiveD lends all idle units."""
    for sku in dict.fromkeys(one.sku for one in requests if one.units):
        of_sku = [one for one in requests if one.sku == sku and one.units]
        units = sum(one.units for one in of_sku)
        # A share of whole machines and parts of machines can only be said in units.
        machines = sum(one.machines for one in of_sku) if all(one.machines for one in of_sku) else 0
        yield Share(sku, units, units * workers[sku].memory_bytes, lend=units, borrow=None, machines=machines)


class _Block:
    """The block beside the machines that its cells are. Of a machine in two chains its devices count, not its cores."""

    def __init__(self, site: Site, config: HivedConfig, workers: Mapping[str, Workers] | None) -> None:
        self.workers = workers_of(site) if workers is None else workers
        self._names_of_block = workers is not None
        self._chains = chains_of(config)
        self._skus = {name: found.sku for found in self.workers.values() for name in found.names}
        self._present = {name for found in self.workers.values() for name in found.present}
        self._pins = pins_of(config)
        self._free = self._unpinned(config)

    def _unpinned(self, config: HivedConfig) -> dict[str, dict[str, int]]:
        """Returns chain -> SKU -> units of unpinned machines. A machine counts once, in its first chain."""
        found: dict[str, dict[str, int]] = {top: {} for top in self._chains}
        pinned = {name for pin in self._pins.values() for name in self._machines(pin)}
        seen: set[tuple[str, str]] = set()
        for top in tops(config):
            for node in top.nodes():
                sku = top.chain.leaf if self._names_of_block else self._skus.get(node.node, "")
                workers = self.workers.get(sku)
                if workers is not None and node.node not in pinned and (node.node, sku) not in seen:
                    # A block may name one machine in several chains, and its devices exist once.
                    seen.add((node.node, sku))
                    units = found[top.chain.top]
                    units[workers.sku] = units.get(workers.sku, 0) + workers.units
        return found

    def _machines(self, cell: Cell) -> list[str]:
        """Returns the machines of a cell, or [] for a part of a machine."""
        return [node.node for node in cell.nodes()] if cell.depth <= cell.chain.node else []

    def pinned(self, cluster: HivedCluster) -> Iterator[str]:
        """Machines that are its own, and present."""
        for pin in cluster.pinned_cells:
            cell = self._pins.get(pin.pinned_cell_id or "")
            yield from (name for name in self._machines(cell) if name in self._present) if cell is not None else ()

    def of_cells(self, cluster: HivedCluster) -> Iterator[_Request]:
        """Yields the requests of its virtual cells."""
        for cell in cluster.virtual_cells:
            way = virtual_path(self._chains, cell.cell_type or "")
            if way is not None and cell.cell_number:
                yield from self._requests(way.chain, way.depth, cell.cell_number)

    def of_parts(self, cluster: HivedCluster) -> Iterator[_Request]:
        """Yields the requests of its pinned cells that are parts of machines: the same units on any machine."""
        for pin in cluster.pinned_cells:
            cell = self._pins.get(pin.pinned_cell_id or "")
            if cell is not None and cell.depth > cell.chain.node:
                yield from self._requests(cell.chain, cell.depth, 1)

    def _requests(self, chain: Chain, depth: int, number: int) -> Iterator[_Request]:
        """Of the SKUs that the chain's machines are, one after the other."""
        whole = depth <= chain.node
        wanted = number * (chain.machines(depth) if whole else 1)
        free = self._free[chain.top]
        for sku, units in free.items():
            workers = self.workers[sku]
            needed = wanted * workers.units if whole else _units(workers, chain, depth, wanted)
            count = min(wanted, units // workers.units) if whole else wanted * min(units, needed) // max(1, needed)
            taken = count * workers.units if whole else min(units, needed)
            free[sku] -= taken
            wanted -= count
            yield _Request(sku, taken, count if whole else 0)


def _units(workers: Workers, chain: Chain, depth: int, number: int) -> int:
    """Returns the units of these cells below a machine: devices unchanged, cores as a part of a machine's
    supply here.
    """
    leaves = number * chain.leaves(depth)
    return leaves if workers.resource else leaves * workers.units // chain.leaves(chain.node)


def pins_of(config: HivedConfig) -> dict[str, Cell]:
    """The pinned cells by their names."""
    cells = (cell for top in tops(config) for cell in top.below())
    return {cell.spec.pinned_cell_id: cell for cell in cells if cell.spec.pinned_cell_id is not None}


def remarks(site: Site, config: HivedConfig) -> Iterator[str]:
    """Yields the settings of a block that are read with less meaning."""
    chains, present = chains_of(config), {machine.hostname for machine in site.workers}
    skus = {machine.hostname: machine.sku for machine in site.machines}
    pins = pins_of(config)
    for name, cluster in config.virtual_clusters.items():
        for one in cluster.virtual_cells:
            way = virtual_path(chains, one.cell_type or "")
            if way is not None and one.cell_number:
                yield from _of_depth(name, way.chain, way.depth, one.cell_number)
        for pin in cluster.pinned_cells:
            if (cell := pins.get(pin.pinned_cell_id or "")) is not None:
                yield from _of_pin(name, cell, present)
    for chain in chains.values():
        cells = (node for top in tops(config) if top.chain.top == chain.top for node in top.nodes())
        found = {skus[node.node] for node in cells if node.node in skus}
        if len(found) > 1:
            yield f"{chain.top} has machines of {', '.join(sorted(found))}: each is an SKU of its own here"
    yield from _of_chains(chains, tops(config), skus)


def _of_depth(name: str, chain: Chain, depth: int, number: int) -> Iterator[str]:
    kind, cells = chain.types[depth], plural(number, "cell")
    if depth < chain.node:
        yield (
            f"{name}: {cells} of {kind}, each {plural(chain.machines(depth), 'machine')} side by side, are as many "
            "machines here, wherever they are: jobs ask for a level of scheduler.topology"
        )
    elif chain.node < depth < len(chain.types) - 1:
        yield (
            f"{name}: {cells} of {kind}, each {plural(chain.leaves(depth), chain.leaf)} side by side, are as many "
            "units here, wherever they are in a machine"
        )


def _of_pin(name: str, cell: Cell, present: set[str]) -> Iterator[str]:
    pin = cell.spec.pinned_cell_id
    if cell.depth > cell.chain.node:
        units = plural(cell.leaves, cell.chain.leaf)
        yield f"{name}: {pin} pins {units} of {cell.node}; here they are guaranteed, and only whole machines are pinned"
    for node in cell.nodes():
        if node.node not in present:
            yield f"{name}: {node.node} is pinned and absent: it is left out"


def _of_chains(chains: Mapping[str, Chain], cells: Iterator[Cell], skus: Mapping[str, str]) -> Iterator[str]:
    """One SKU in several chains, and machines in two."""
    holders: dict[str, dict[str, None]] = {}
    twice: dict[str, str] = {}
    for top in cells:
        for node in top.nodes():
            if node.node in skus:
                holders.setdefault(skus[node.node], {})[top.chain.top] = None
                first = twice.setdefault(node.node, top.chain.top)
                if first != top.chain.top:
                    yield f"{node.node} is in {first} and in {top.chain.top}: what the second has of it is left out"
    for sku, found in holders.items():
        if len(found) > 1 and len(chains) > 1:
            yield f"{', '.join(found)} are one SKU here, {sku}: a job may have machines of each"
