"""HiveD's configuration: cells, and what of them is whose. Pure.

Names are made of the SKU and the level, as OpenPAI's own generator made them: HiveD takes jobs for lost whose cell type
has another name. No name has a number in it, so that one machine more renames nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pai_install.ports import HIVED_PORT
from pai_install.scheduling import amounts
from pai_install.scheduling.model import Scheduling, VirtualCluster

Object = dict[str, Any]

_MEBIBYTE = 2**20
# as OpenPAI has it: how long HiveD holds others back for a pod that has to wait
_BLOCK_MILLISECONDS = 50


def node_type(sku: str) -> str:
    """The cell type of a machine."""
    return f"{sku}-NODE"


def pool_type(sku: str, owner: str | None = None) -> str:
    """The cell type of all shared machines of an SKU, or of those that are a virtual cluster's own."""
    return f"{sku}-NODE-POOL" + (f"-{owner}" if owner is not None else "")


def hived_config(scheduling: Scheduling) -> Object:
    """What HiveD reads. Each pool is in some virtual cluster: HiveD does not start with one that is in none."""
    pools = tuple(_pools(scheduling))
    return {
        "webServerAddress": f"127.0.0.1:{HIVED_PORT}",
        "waitingPodSchedulingBlockMilliSec": _BLOCK_MILLISECONDS,
        "physicalCluster": {
            "skuTypes": {sku: _unit(scheduling, sku) for sku in dict.fromkeys(sku for sku, _, _ in pools)},
            "cellTypes": _cell_types(scheduling, pools),
            "physicalCells": [
                {"cellType": pool_type(sku, owner), "cellChildren": [{"cellAddress": machine} for machine in machines]}
                for sku, owner, machines in pools
            ],
        },
        "virtualClusters": {
            cluster.name: {"virtualCells": list(_virtual_cells(scheduling, cluster))} for cluster in scheduling.clusters
        },
    }


def _pools(scheduling: Scheduling) -> Iterator[tuple[str, str | None, tuple[str, ...]]]:
    """SKU, owner and machines of each pool. Machines of one are cells of a kind, and a job is within one."""
    for sku, supply in scheduling.supply.items():
        shared = tuple(machine for machine in supply.machines if machine not in scheduling.pinned)
        if shared and any(amounts.guaranteed(scheduling, cluster, sku).units for cluster in scheduling.clusters):
            yield sku, None, shared
        for cluster in scheduling.clusters:
            if own := amounts.pinned_machines(scheduling, cluster, sku):
                yield sku, cluster.name, own


def _unit(scheduling: Scheduling, sku: str) -> Object:
    """What goes with one cell, as OpenPAI's rest-server reads it; HiveD does not."""
    supply = scheduling.supply[sku]
    return {
        "gpu": int(bool(supply.resource)),
        "cpu": max(1, supply.cpu_millis // 1000),
        "memory": f"{supply.memory_bytes // _MEBIBYTE}Mi",
    }


def _cell_types(scheduling: Scheduling, pools: tuple[tuple[str, str | None, tuple[str, ...]], ...]) -> Object:
    found: Object = {}
    for sku, owner, machines in pools:
        units = scheduling.supply[sku].units
        found[node_type(sku)] = {"childCellType": sku, "childCellNumber": units, "isNodeLevel": True}
        found[pool_type(sku, owner)] = {"childCellType": node_type(sku), "childCellNumber": len(machines)}
    return found


def _virtual_cells(scheduling: Scheduling, cluster: VirtualCluster) -> Iterator[Object]:
    """Machines of its own, whole ones of all, and single devices where that leaves a rest."""
    for sku, supply in scheduling.supply.items():
        if own := amounts.pinned_machines(scheduling, cluster, sku):
            yield _virtual_cell((pool_type(sku, cluster.name), node_type(sku)), len(own))
        whole, single = divmod(amounts.guaranteed(scheduling, cluster, sku).units, supply.units)
        if whole:
            yield _virtual_cell((pool_type(sku), node_type(sku)), whole)
        if single:
            yield _virtual_cell((pool_type(sku), node_type(sku), sku), single)


def _virtual_cell(path: tuple[str, ...], number: int) -> Object:
    return {"cellType": ".".join(path), "cellNumber": number}


def shortages(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Where virtual clusters are given more cells than there are, a sentence each; empty where all fit.

    HiveD looks at the sum of each level only: cells that are pinned on different machines, so that no whole machine is
    left, pass there and crash it later. config: one whose types and names are right.
    """
    types: Mapping[str, Any] = config["physicalCluster"].get("cellTypes") or {}
    cells = config["physicalCluster"].get("physicalCells") or []
    tops = dict.fromkeys(str(cell["cellType"]) for cell in cells)
    found = (_shortage(top, types, cells, config.get("virtualClusters") or {}) for top in tops)
    return tuple(words for it in found for words in it)


def _shortage(
    top: str, types: Mapping[str, Any], cells: list[Mapping[str, Any]], clusters: Mapping[str, Any]
) -> Iterator[str]:
    free: dict[str, int] = {}
    for cell in cells:
        if cell["cellType"] == top:
            _count_free(top, cell, types, free)
    need = _needed(top, clusters)
    carry = 0
    for kind, children in _levels(top, types):
        available = free.get(kind, 0) + carry
        if need.get(kind, 0) > available:
            yield f"{top}: {need[kind]} cells of the type {kind} are given away, and {available} are there"
        carry = max(0, available - need.get(kind, 0)) * children


def _levels(top: str, types: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Cell types from the top to the leaf, and how many children a cell of each has."""
    kind = top
    while kind in types:
        yield kind, int(types[kind]["childCellNumber"])
        kind = types[kind]["childCellType"]
    yield kind, 0


def _count_free(kind: str, cell: Mapping[str, Any], types: Mapping[str, Any], free: dict[str, int]) -> None:
    """Adds the largest cells that have nothing pinned in them."""
    if cell.get("pinnedCellId"):
        return
    if not _has_pins(cell):
        free[kind] = free.get(kind, 0) + 1
        return
    children = cell.get("cellChildren") or []
    below = types[kind]["childCellType"]
    free[below] = free.get(below, 0) + int(types[kind]["childCellNumber"]) - len(children)
    for child in children:
        _count_free(below, child, types, free)


def _has_pins(cell: Mapping[str, Any]) -> bool:
    return any(child.get("pinnedCellId") or _has_pins(child) for child in cell.get("cellChildren") or [])


def _needed(top: str, clusters: Mapping[str, Any]) -> Mapping[str, int]:
    """Cells that virtual clusters are given below a top cell, by type."""
    found: dict[str, int] = {}
    for cluster in clusters.values():
        for cell in cluster.get("virtualCells") or []:
            path = str(cell["cellType"]).split(".")
            if path[0] == top:
                found[path[-1]] = found.get(path[-1], 0) + int(cell["cellNumber"])
    return found
