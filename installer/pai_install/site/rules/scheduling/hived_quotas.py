"""HiveD's virtual clusters: ways down that exist, pinned cells, and not more than there is at any level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic_core import PydanticCustomError

from pai_install.documents.problem import YamlPath
from pai_install.documents.validate import did_you_mean, nearest
from pai_install.site.hived_cells import CELLS, HIVED, Cell, Chain, chains_of, tops, virtual_path
from pai_install.site.model import Site
from pai_install.site.rules.problems import Wrong
from pai_install.site.rules.scheduling.hived_capacity import Room
from pai_install.site.services.hived import HivedConfig
from pai_install.site.services.virtual_clusters import read_cluster_name

_CLUSTERS: YamlPath = (*HIVED, "virtualClusters")


@dataclass(frozen=True, slots=True)
class _Request:
    """The request of a virtual cluster on a level of a chain. path: of the virtual cell."""

    path: YamlPath
    cluster: str
    chain: Chain
    depth: int
    number: int


def of_virtual_clusters(site: Site, config: HivedConfig) -> Iterator[Wrong]:
    """Yields problems of names, guarantees, and pinned cells."""
    chains = chains_of(config)
    yield from _names(config)
    requests: list[_Request] = []
    for name, cluster in config.virtual_clusters.items():
        for number, cell in enumerate(cluster.virtual_cells):
            path = (*_CLUSTERS, name, "virtualCells", number)
            yield from _cell(config, chains, path, cell.cell_type, cell.cell_number)
            way = virtual_path(chains, cell.cell_type or "")
            if way is not None:
                requests.append(_Request(path, name, way.chain, way.depth, cell.cell_number or 0))
    yield from _pins(config)
    yield from _unused(config, chains, {request.chain.top for request in requests})
    yield from _capacity(site, config, chains, requests)


def _names(config: HivedConfig) -> Iterator[Wrong]:
    for name in config.virtual_clusters:
        try:
            read_cluster_name(name)
        except PydanticCustomError as error:
            words = error.context or {}
            message = f"{words.get('message', '')}"
            yield Wrong((*_CLUSTERS, name), "cluster-name", message, str(words.get("remedy", "")))
    if config.virtual_clusters and "default" not in config.virtual_clusters:
        message = "there is no virtual cluster default: OpenPAI sends jobs there that name none"
        near = nearest("default", config.virtual_clusters)
        remedy = f"rename {near}" if near else "add default: {virtualCells: []}, or leave it so"
        yield Wrong((*_CLUSTERS, near) if near else _CLUSTERS, "no-default", message, remedy, "warning")


def _cell(
    config: HivedConfig, chains: Mapping[str, Chain], path: YamlPath, written: str | None, number: int | None
) -> Iterator[Wrong]:
    if written is None:
        yield Wrong(path, "missing", "cellType is missing", "write TOP.MIDDLE.TYPE, from the type at the top down")
    else:
        yield from _way(config, chains, (*path, "cellType"), written)
    if number is None:
        yield Wrong(path, "missing", "cellNumber is missing: nothing is guaranteed", "say how many", "warning")
    elif number < 0:
        message = f"{number} is no number of cells: HiveD adds it to what others may have"
        yield Wrong((*path, "cellNumber"), "cell-number", message, "write 0 or more")


def _way(config: HivedConfig, chains: Mapping[str, Chain], path: YamlPath, written: str) -> Iterator[Wrong]:
    words = written.split(".")
    top, last = words[0], words[-1]
    if top not in chains:
        present = [spec.cell_type or "" for spec in config.physical_cluster.physical_cells]
        broken = [name for name in present if name not in chains]
        if top in broken or nearest(top, broken):  # told at that cell
            return
        message = f"{top} is no type of a cell at the top of physicalCells: HiveD ends with an error"
        yield Wrong(path, "unknown-chain", message, did_you_mean(top, chains))
        return
    chain = chains[top]
    way = virtual_path(chains, written)
    if way is None and last not in chain.types:
        types = {*config.physical_cluster.cell_types, *(one.leaf for one in chains.values())}
        what = f"is of another chain than {top}: HiveD guarantees something else" if last in types else "is no type"
        yield Wrong(path, "unknown-cell", f"{last} {what}", did_you_mean(last, chain.types))
    elif way is None:
        wrong = next(word for word in words if word not in chain.types) if set(words) - set(chain.types) else words[1]
        message = f"{wrong} is not on the way from {top} down to {last}: HiveD does not look at it"
        yield Wrong(path, "unknown-cell", message, f"write {'.'.join(chain.types[: chain.types.index(last) + 1])}")
    elif not way.whole:
        message = f"leaves out types between {top} and {last}"
        remedy = f"write {'.'.join(chain.types[: way.depth + 1])}"
        yield Wrong(path, "cell-way", message, remedy, "warning")


def _pins(config: HivedConfig) -> Iterator[Wrong]:
    known: dict[str, Cell] = {}
    for top in tops(config):
        yield from _nested(top, "")
        for cell in top.below():
            pin = cell.spec.pinned_cell_id
            if pin is not None and known.setdefault(pin, cell) is not cell:
                message = f"{pin} is the name of another cell already: HiveD forgets one of them"
                yield Wrong((*cell.path, "pinnedCellId"), "twice", message, "give each pinned cell a name of its own")
    holder: dict[str, str] = {}
    for name, cluster in config.virtual_clusters.items():
        for number, one in enumerate(cluster.pinned_cells):
            path = (*_CLUSTERS, name, "pinnedCells", number)
            yield from _pin(path, name, one.pinned_cell_id, known, holder)
    for pin, cell in known.items():
        if pin not in holder:
            message = f"{pin} is used by no virtual cluster: HiveD never gives the cell to anyone again"
            yield Wrong((*cell.path, "pinnedCellId"), "unused-pin", message, "remove it, or add it to pinnedCells")


def _pin(
    path: YamlPath, cluster: str, pin: str | None, known: Mapping[str, Cell], holder: dict[str, str]
) -> Iterator[Wrong]:
    if pin is None:
        yield Wrong(path, "missing", "pinnedCellId is missing: HiveD ends with an error", "name a pinned cell")
    elif pin not in known:
        message = f"{pin} is the name of no physical cell: HiveD ends with an error"
        yield Wrong((*path, "pinnedCellId"), "unknown-pin", message, did_you_mean(pin, known) or "remove it")
    elif pin in holder:
        message = f"{pin} is pinned to {holder[pin]} already: HiveD ends with an error"
        yield Wrong((*path, "pinnedCellId"), "pinned-twice", message, "pin it to one virtual cluster, once")
    else:
        holder[pin] = cluster


def _nested(cell: Cell, above: str) -> Iterator[Wrong]:
    pin = cell.spec.pinned_cell_id
    if pin is not None and above:
        message = f"is in {above}, which is pinned as a whole"
        yield Wrong((*cell.path, "pinnedCellId"), "pinned-twice", message, "pin one of them")
    for child in cell.children:
        yield from _nested(child, pin or above)


def _unused(config: HivedConfig, chains: Mapping[str, Chain], used: set[str]) -> Iterator[Wrong]:
    """Chains that no virtual cluster has anything of."""
    pins = {one.pinned_cell_id for cluster in config.virtual_clusters.values() for one in cluster.pinned_cells}
    reported = set(used)
    for top in tops(config):
        if any(cell.spec.pinned_cell_id in pins - {None} for cell in top.below()):
            reported.add(top.chain.top)
    for number, spec in enumerate(config.physical_cluster.physical_cells):
        name = spec.cell_type or ""
        if name in chains and name not in reported:
            reported.add(name)
            message = f"no virtual cluster has anything of {name}: HiveD ends with an error"
            yield Wrong((*CELLS, number, "cellType"), "unused-chain", message, "give it to one, e.g. to default")


def _capacity(
    site: Site, config: HivedConfig, chains: Mapping[str, Chain], requests: list[_Request]
) -> Iterator[Wrong]:
    absent = frozenset(machine.hostname for machine in site.machines if machine.absent)
    for chain in chains.values():
        cells = [cell for cell in tops(config) if cell.chain.top == chain.top]
        of_chain = [request for request in requests if request.chain.top == chain.top and request.number > 0]
        short = _short(of_chain, Room(chain, cells))
        if short is not None:
            request, left = short
            remedy = f"write at most {left}. Pinned cells count, and a cell with an assigned part is not available"
            yield Wrong((*request.path, "cellNumber"), "over-quota", _too_much(request, left), remedy)
        elif absent and (short := _short(of_chain, Room(chain, cells, absent))) is not None:
            # With the absent machines there is room enough. So it is a warning, and it ends when they are back.
            message = f"{_too_much(*short)} while machines are absent"
            remedy = "leave it until they are back, or write less"
            yield Wrong((*short[0].path, "cellNumber"), "over-quota", message, remedy, "warning")


def _too_much(request: _Request, left: int) -> str:
    return f"{request.cluster} is to have {request.number} of {request.chain.types[request.depth]}, and {left} are left"


def _short(requests: list[_Request], room: Room) -> tuple[_Request, int] | None:
    """Returns the first unsatisfiable request and the remaining room. Larger cells are allocated first."""
    needed = Counter[int]()
    for request in requests:
        needed[request.depth] += request.number
    for depth, available in room.left(needed):
        if needed[depth] <= available:
            continue
        left = available
        for request in (one for one in requests if one.depth == depth):
            if request.number > left:
                return request, left
            left -= request.number
    return None
