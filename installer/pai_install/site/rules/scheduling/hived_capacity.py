"""How many cells of each level of a chain can be promised, pinned cells taken out first. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from pai_install.site.hived_cells import Cell, Chain


class Room:
    """The cells of one chain that are free. without: machines that are not there.

    HiveD itself only counts: it would promise a whole machine of which one device is pinned to someone else.
    """

    def __init__(self, chain: Chain, cells: Iterable[Cell], without: frozenset[str] = frozenset()) -> None:
        self._chain = chain
        self._without = without
        self._whole = Counter[int]()
        # depth -> how many children each whole cell lacks that lacks any
        self._lacking: dict[int, list[int]] = {}
        for cell in cells:
            self._add(cell)

    def left(self, needed: Mapping[int, int]) -> Iterator[tuple[int, int]]:
        """Every depth from the top down, and how many cells of it are free when those above are given."""
        carried = 0
        for depth in range(len(self._chain.types)):
            available = carried + self._whole[depth]
            yield depth, available
            left = max(0, available - needed.get(depth, 0))
            if depth < len(self._chain.children):
                lacking = sorted(self._lacking.get(depth, ()), reverse=True)[:left]
                carried = left * self._chain.children[depth] - sum(lacking)

    def _add(self, cell: Cell) -> None:
        if cell.spec.pinned_cell_id is not None or (cell.is_node and cell.node in self._without):
            return
        if any(self._taken(inner) for child in cell.children for inner in child.below()):
            for child in cell.children:
                self._add(child)
            return
        self._whole[cell.depth] += 1
        for inner in cell.below():
            written = len(inner.spec.cell_children)
            if 0 < written < inner.expected:
                self._lacking.setdefault(inner.depth, []).append(inner.expected - written)

    def _taken(self, cell: Cell) -> bool:
        return cell.spec.pinned_cell_id is not None or (cell.is_node and cell.node in self._without)
