"""Problems of HiveD's block: values that crash HiveD, and values that it silently misinterprets."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.documents.problem import YamlPath
from pai_install.documents.validate import did_you_mean, nearest
from pai_install.site.groups import groups_of
from pai_install.site.hived_cells import CELLS, HIVED, TYPES, Cell, Chain, chain_of, chains_of, tops
from pai_install.site.model import Site
from pai_install.site.rules.problems import Wrong
from pai_install.site.rules.scheduling.clusters import of_acls
from pai_install.site.rules.scheduling.hived_machines import of_machines
from pai_install.site.rules.scheduling.hived_quotas import of_virtual_clusters
from pai_install.site.services.hived import CellType, HivedConfig


def of_hived(site: Site, config: HivedConfig) -> Iterator[Wrong]:
    """Yields problems in the block, and between it and the machines."""
    yield from _types(config)
    yield from _skus(config)
    yield from _tops(config)
    for top in tops(config):
        for cell in top.below():
            yield from _cell(cell)
    yield from of_machines(site, config)
    yield from of_virtual_clusters(site, config)
    if groups_of(site.services):
        yield from of_acls(site, config.virtual_clusters)
        yield from _misspelt_clusters(site, config)


def _misspelt_clusters(site: Site, config: HivedConfig) -> Iterator[Wrong]:
    """Virtual clusters of no group, where groups have one of a similar name that does not exist."""
    granted = {name for group in groups_of(site.services) for name in group.group.extension.acls.virtual_clusters}
    missing = granted.difference(config.virtual_clusters, {"default"})  # which has a message of its own
    for name in config.virtual_clusters:
        near = "" if name in granted else nearest(name, missing)
        if near:
            message = f"no group may use {name}, and groups name {near}, which does not exist"
            yield Wrong(
                (*HIVED, "virtualClusters", name), "unknown-cluster", message, f"did you mean {near}?", "warning"
            )


def _types(config: HivedConfig) -> Iterator[Wrong]:
    types = config.physical_cluster.cell_types
    for name, found in types.items():
        path = (*TYPES, name)
        if "." in name or "/" in name:
            message = f"{name} has a '.' or '/' in it, which divides types in virtualCells"
            yield Wrong(path, "cell-name", message, "rename it, and what is called so below virtualClusters")
        if found.child_cell_type is None:
            yield Wrong(path, "missing", "childCellType is missing", "say what it is made of")
        elif {".", "/"} & set(found.child_cell_type) and found.child_cell_type not in types:
            message = f"{found.child_cell_type} has a '.' or '/' in it, which divides types in virtualCells"
            yield Wrong((*path, "childCellType"), "cell-name", message, "rename it")
        yield from _child_number(path, found)
    yield from _cycles(config)


def _child_number(path: YamlPath, found: CellType) -> Iterator[Wrong]:
    number = found.child_cell_number
    if number is None:
        message = "childCellNumber is missing: HiveD ends with an error"
        yield Wrong(path, "missing", message, "say of how many it is made")
    elif number < 1:
        message = f"{number} is no number of cells: HiveD ends with an error"
        yield Wrong((*path, "childCellNumber"), "cell-number", message, "write 1 or more")


def _cycles(config: HivedConfig) -> Iterator[Wrong]:
    """Yields types that contain themselves. Each cycle is reported once, at its first type in the file."""
    types = config.physical_cluster.cell_types
    # Every type of a circle finds the same circle. It is reported once.
    reported: set[str] = set()
    for name in types:
        circle = _circle(config, name)
        if circle and not reported.intersection(circle):
            reported.update(circle)
            message = f"contains itself: {' -> '.join((*circle, circle[0]))} (HiveD would run out of memory)"
            yield Wrong((*TYPES, name, "childCellType"), "cell-cycle", message, "name the type below it")


def _circle(config: HivedConfig, name: str) -> tuple[str, ...]:
    """Returns the types of the cycle from a type back to itself, or () without a cycle."""
    types, way = config.physical_cluster.cell_types, [name]
    while (found := types.get(way[-1])) is not None and found.child_cell_type is not None:
        if found.child_cell_type == name:
            return tuple(way)
        # This circle begins further down. It is reported at the types that are in it.
        if found.child_cell_type in way:
            return ()
        way.append(found.child_cell_type)
    return ()


def _skus(config: HivedConfig) -> Iterator[Wrong]:
    """Yields problems of SKUs. OpenPAI divides the requests of jobs by the share of one device."""
    cluster = config.physical_cluster
    for key, shares in (("skuTypes", cluster.sku_types), ("gpuTypes", cluster.gpu_types)):
        for name, share in shares.items():
            if share.cpu is not None and share.cpu < 1:
                path = ("hivedscheduler", "config", "physicalCluster", key, name, "cpu")
                message = f"{share.cpu} cores go with one {name}: no job could be placed"
                yield Wrong(path, "cell-share", message, "write 1 or more")
    shares = {**cluster.gpu_types, **cluster.sku_types}
    reported: set[str] = set()
    for cell in tops(config):
        if shares and cell.chain.leaf not in {*shares, *reported}:
            reported.add(cell.chain.leaf)
            holder = cell.chain.types[-2]
            message = f"{cell.chain.leaf} is not among skuTypes: what goes with one is not known"
            remedy = did_you_mean(cell.chain.leaf, {*shares, *cluster.cell_types} - {holder})
            yield Wrong((*TYPES, holder, "childCellType"), "unknown-sku", message, remedy, "warning")


def _tops(config: HivedConfig) -> Iterator[Wrong]:
    types = config.physical_cluster.cell_types
    for number, spec in enumerate(config.physical_cluster.physical_cells):
        path: YamlPath = (*CELLS, number)
        if spec.cell_type is None:
            yield Wrong(path, "missing", "cellType is missing: HiveD ends with an error", did_you_mean("", types))
        elif spec.cell_type not in types:
            message = f"{spec.cell_type} is not among cellTypes: HiveD ends with an error"
            yield Wrong((*path, "cellType"), "unknown-cell", message, did_you_mean(spec.cell_type, types))
        else:
            chain = chain_of(types, spec.cell_type)
            if chain is not None and chain.node < 0:
                yield _without_node(config, chain, path)
    for chain in chains_of(config).values():
        yield from _node_levels(config, chain)


def _without_node(config: HivedConfig, chain: Chain, path: YamlPath) -> Wrong:
    """Why a chain has no level of machines: the type that it ends at is misspelt, or none is marked."""
    cluster = config.physical_cluster
    others = [name for name in cluster.cell_types if name not in chain.types]
    # A misspelt type below has no parts either, so the chain ends there as if it were a device.
    near = "" if chain.leaf in {**cluster.sku_types, **cluster.gpu_types} else nearest(chain.leaf, others)
    if near:
        place = (*TYPES, chain.types[-2], "childCellType")
        return Wrong(place, "unknown-cell", f"{chain.leaf} is not among cellTypes", f"did you mean {near}?")
    message = f"no type from {chain.top} down is a machine: HiveD ends with an error"
    remedy = "write isNodeLevel: true at the type that is one machine"
    return Wrong((*path, "cellType"), "no-node-level", message, remedy)


def _node_levels(config: HivedConfig, chain: Chain) -> Iterator[Wrong]:
    types = config.physical_cluster.cell_types
    nodes = [name for name in chain.types[:-1] if types[name].is_node_level]
    for name in nodes[1:]:
        message = f"is a machine, and so is {nodes[0]}, which is made of it"
        yield Wrong((*TYPES, name, "isNodeLevel"), "node-level", message, "remove one of them")


def _cell(cell: Cell) -> Iterator[Wrong]:
    spec = cell.spec
    if cell.depth > 0 and spec.cell_type not in (None, cell.type):
        message = f"is a {cell.type} by its place, whatever is written: {spec.cell_type} does not count"
        yield Wrong((*cell.path, "cellType"), "cell-type", message, "remove it, or change cellTypes")
    written, path = len(spec.cell_children), (*cell.path, "cellChildren")
    if cell.depth + 1 == len(cell.chain.types):
        if written:
            yield Wrong(path, "cell-children", f"{cell.type} is a device: it is made of nothing", "remove them")
    elif written > cell.expected:
        message = f"has {written} cells where {cell.type} is made of {cell.expected}: HiveD counts wrong"
        yield Wrong(path, "cell-children", message, f"remove {written - cell.expected}, or raise childCellNumber")
    elif 0 < written < cell.expected:
        message = f"has {written} cells where {cell.type} is made of {cell.expected}"
        yield Wrong(path, "cell-children", message, "lower childCellNumber, or leave it so", "warning")
