"""HiveD's cells as HiveD interprets them: types as chains, written cells on machines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from math import prod

from pai_install.documents.problem import YamlPath
from pai_install.site.model import Site
from pai_install.site.services.hived import CellType, HivedConfig, PhysicalCell

HIVED: YamlPath = ("hivedscheduler", "config")
CELLS: YamlPath = (*HIVED, "physicalCluster", "physicalCells")
TYPES: YamlPath = (*HIVED, "physicalCluster", "cellTypes")
# more devices, or cores, than one machine has: such a block is not expanded
MAX_LEAVES = 10_000


def hived_of(site: Site) -> HivedConfig | None:
    """Returns HiveD's block if it divides the site, or None if another section does or there is none."""
    services = site.services
    declared = services.scheduler is not None or services.virtual_clusters is not None
    if declared or services.hivedscheduler is None or not site.settings.enable_hived_scheduler:
        return None
    return services.hivedscheduler.config


@dataclass(frozen=True, slots=True)
class Chain:
    """A top-level type with its parts. types: from the top to the leaf, which is a device.

    children: number of parts of the next type in each. node: index of the machine type, -1 for none.
    """

    types: tuple[str, ...]
    children: tuple[int, ...]
    node: int

    @property
    def top(self) -> str:
        """The type at the top, after which HiveD calls the chain."""
        return self.types[0]

    @property
    def leaf(self) -> str:
        """The type of a device, or of a core."""
        return self.types[-1]

    def leaves(self, depth: int) -> int:
        """How many leaves a cell of that depth is made of."""
        return prod(self.children[depth:])

    def machines(self, depth: int) -> int:
        """How many machines a cell at or above them is made of."""
        return prod(self.children[depth : self.node])


def chain_of(types: Mapping[str, CellType], top: str) -> Chain | None:
    """Returns the chain below a type, or None if a type is incomplete or contains itself."""
    names, children, node = [top], [], -1
    while (found := types.get(names[-1])) is not None:
        number = found.child_cell_number or 0
        if found.child_cell_type is None or number < 1 or found.child_cell_type in names:
            return None
        if found.is_node_level and node < 0:
            node = len(names) - 1
        names.append(found.child_cell_type)
        children.append(number)
    return Chain(tuple(names), tuple(children), node)


@dataclass(frozen=True, slots=True)
class Cell:
    """A written cell, or a cell that HiveD generates. depth: 0 at the top.

    path: place in the file. index: HiveD's number if it has no address. node: its machine, "" above machines.
    """

    chain: Chain
    depth: int
    path: YamlPath
    index: int
    node: str
    spec: PhysicalCell

    @property
    def type(self) -> str:
        """Its type, by its place."""
        return self.chain.types[self.depth]

    @property
    def is_node(self) -> bool:
        """Whether it is a machine."""
        return self.depth == self.chain.node

    @property
    def leaves(self) -> int:
        """How many devices it has, by its type."""
        return self.chain.leaves(self.depth)

    @property
    def expected(self) -> int:
        """How many cells its type is made of."""
        return self.chain.children[self.depth] if self.depth < len(self.chain.children) else 0

    @property
    def children(self) -> tuple[Cell, ...]:
        """The cells that are written in it."""
        if self.depth + 1 >= len(self.chain.types):
            return ()
        return tuple(self._child(number, spec) for number, spec in enumerate(self.spec.cell_children))

    def _child(self, number: int, spec: PhysicalCell) -> Cell:
        depth = self.depth + 1
        # HiveD counts the devices of each machine from 0. Above machines it counts on over all cells of the type.
        base = 0 if self.is_node else self.index
        node = self.node
        if depth == self.chain.node:
            node = spec.cell_address or ""
        path = (*self.path, "cellChildren", number)
        return Cell(self.chain, depth, path, base * self.expected + number, node, spec)

    def below(self) -> Iterator[Cell]:
        """It and all cells that are written in it."""
        yield self
        for child in self.children:
            yield from child.below()

    def nodes(self) -> Iterator[Cell]:
        """The machines in it, itself among them, that are written."""
        return (cell for cell in self.below() if cell.is_node)

    def leaf_numbers(self) -> Iterator[tuple[int | None, YamlPath]]:
        """Yields the number and place of every device of a machine or of a part. Invalid numbers are None."""
        if self.depth + 1 == len(self.chain.types):
            address = self.spec.cell_address
            yield (self.index if address is None else _number(address)), self.path
        elif self.children:
            for child in self.children:
                yield from child.leaf_numbers()
        else:
            # The same numbers as HiveD gives: from 0 on each machine, and counted on above machines.
            first = 0 if self.is_node else self.index * self.leaves
            numbers = range(first, first + self.leaves)
            yield from ((number, self.path) for number in islice(numbers, MAX_LEAVES))


def _number(address: str) -> int | None:
    """As HiveD reads the address of a device."""
    # HiveD is written in Go, which takes a sign but only the digits 0 to 9 here. More digits do not fit its number.
    digits = address.removeprefix("-").removeprefix("+")
    return int(address) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else None


def tops(config: HivedConfig) -> Iterator[Cell]:
    """Yields the top-level cells with complete types."""
    cluster = config.physical_cluster
    for number, spec in enumerate(cluster.physical_cells):
        # The rules report a cell of an unknown type. Here it is left out.
        known = spec.cell_type is not None and spec.cell_type in cluster.cell_types
        chain = chain_of(cluster.cell_types, str(spec.cell_type)) if known else None
        if chain is not None and chain.node >= 0:
            node = spec.cell_address or "" if chain.node == 0 else ""
            yield Cell(chain, 0, (*CELLS, number), number, node, spec)


@dataclass(frozen=True, slots=True)
class VirtualPath:
    """TOP.MIDDLE.TYPE of a virtual cell: the chain, and how deep the type is in it. whole: whether none is left out."""

    chain: Chain
    depth: int
    whole: bool


def virtual_path(chains: Mapping[str, Chain], written: str) -> VirtualPath | None:
    """Returns the path of a virtual cell's cellType, or None if it matches no existing chain."""
    words = written.split(".")
    chain = chains.get(words[0])
    if chain is None or words[-1] not in chain.types:
        return None
    way = iter(chain.types)
    if not all(word in way for word in words):
        return None
    depth = chain.types.index(words[-1])
    return VirtualPath(chain, depth, len(words) == depth + 1)


def chains_of(config: HivedConfig) -> Mapping[str, Chain]:
    """The chains that cells are written of, by the type at the top."""
    return {cell.chain.top: cell.chain for cell in tops(config)}
