"""Virtual clusters from HiveD's block to the sections of a site and back, as text. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from pai_install.scheduling.model import PRIORITIES, Priority, Scheduling, Share, Supply, VirtualCluster
from pai_install.site.edit.write import flow as list_of
from pai_install.site.edit.write import scalar
from pai_install.site.model import Site
from pai_install.site.quantity import format_bytes
from pai_install.system.words import plural

_GUIDE = "docs/virtual-clusters.md"
_DEFAULT = "default"


Scalar = str | int


def _flow(pairs: Mapping[str, Scalar]) -> str:
    """A mapping on one line; numbers and booleans as they are."""
    return "{" + ", ".join(f"{key}: {_scalar(value)}" for key, value in pairs.items()) + "}"


def _scalar(value: Scalar) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else scalar(value)


def everything(site: Site) -> Site:
    """The site as if no machine were absent: a migration says all of it."""
    machines = tuple(machine.model_copy(update={"absent": False}) for machine in site.machines)
    return site.model_copy(update={"machines": machines})


def sections_of(scheduling: Scheduling, everyone: Collection[str] = ()) -> str:
    """The sections scheduler and virtual-clusters that say it. everyone: all groups of the site."""
    return "".join(f"{line}\n" for line in (*_scheduler(scheduling), "", *_clusters(scheduling, everyone)))


def _scheduler(scheduling: Scheduling) -> Iterator[str]:
    yield f"# what keeps the virtual clusters: kueue, volcano, hived or default ({_GUIDE})"
    yield "scheduler:"
    yield f"  type: {scheduling.backend}"
    if scheduling.levels:
        yield "  topology: # above the machine, the widest first"
    for level in scheduling.levels:
        yield f"    - {_flow({'name': level.name, 'label': level.label})}"


def _clusters(scheduling: Scheduling, everyone: Collection[str]) -> Iterator[str]:
    yield "# who is guaranteed what; the rest may be lent to others (lend) and borrowed from them (borrow)"
    yield "virtual-clusters:"
    for cluster in scheduling.clusters:
        yield f"  - name: {scalar(cluster.name)}"
        if cluster.groups and set(cluster.groups) != set(everyone):
            yield f"    groups: {list_of(cluster.groups)} # who may submit; without it everyone"
        if cluster.shares:
            yield "    quota:"
        for share in cluster.shares:
            yield f"      - {_flow(dict(_quota(share, scheduling.supply[share.sku])))}"
        if cluster.pinned:
            yield f"    pinned: {list_of(cluster.pinned)} # its own, beside the quota; lent to no one"
        if (cluster.usual, cluster.highest) != ("test", "crit"):
            yield f"    priorities: {_flow({'usual': cluster.usual, 'highest': cluster.highest})}"


def _quota(share: Share, supply: Supply) -> Iterator[tuple[str, Scalar]]:
    """Key and value, without those that are the defaults."""
    yield "sku", share.sku
    if share.machines:
        yield "machines", share.machines
    else:
        yield "devices" if supply.resource else "cores", share.units
    if share.memory_bytes != share.units * supply.memory_bytes:
        yield "memory", format_bytes(share.memory_bytes)
    if share.lend != share.units:
        yield "lend", share.lend or "none"
    if share.borrow is not None:
        yield "borrow", share.borrow or "none"


def within_hived(scheduling: Scheduling) -> Scheduling:
    """What of it HiveD's block says: guarantees and pinned machines. Jobs of priority oppo use whatever is idle."""
    clusters = tuple(
        replace(
            cluster,
            shares=tuple(
                replace(
                    share,
                    memory_bytes=share.units * scheduling.supply[share.sku].memory_bytes,
                    lend=share.units,
                    borrow=None,
                )
                for share in cluster.shares
            ),
            highest="crit",
            usual="test",
        )
        for cluster in scheduling.clusters
    )
    return Scheduling("hived", scheduling.supply, clusters)


def lost_in_hived(scheduling: Scheduling) -> tuple[str, ...]:
    """What HiveD's block cannot say: a sentence each."""
    return tuple(dict.fromkeys(_lost(scheduling)))


def _lost(scheduling: Scheduling) -> Iterator[str]:
    usual: tuple[Priority, Priority] = ("test", "crit")
    for cluster in scheduling.clusters:
        for share in cluster.shares:
            if share.lend != share.units or share.borrow is not None:
                yield f"{cluster.name}: limits of lending {share.sku}: jobs of priority oppo use whatever is idle"
            if share.memory_bytes != share.units * scheduling.supply[share.sku].memory_bytes:
                yield f"{cluster.name}: its memory of {share.sku}: it goes with the cores"
        if (cluster.usual, cluster.highest) != usual:
            yield f"{cluster.name}: its priorities: jobs may have any of {', '.join(PRIORITIES)}"
    if scheduling.levels:
        levels = plural(len(scheduling.levels), "level")
        yield f"{levels} of topology: HiveD has cell types for them, which are written by hand"


def hived_block_of(scheduling: Scheduling) -> str:
    """The YAML of HiveD that says it, but for what `lost_in_hived` names.

    Names of cell types are made of the SKU and the level alone: a count in one would rename it when a machine comes,
    and HiveD would let the jobs of all its machines be evicted. HiveD ends with an error at a chain of no one: what is
    guaranteed to no one is attached to the virtual cluster default with 0 cells, or to the first.
    """
    names = _names(scheduling.supply)
    lines = [*_physical(scheduling, names), *_virtual(scheduling, names)]
    return "".join(f"{line}\n" for line in lines)


def _names(supply: Mapping[str, Supply]) -> dict[str, str]:
    """SKU -> its leaf type: the SKU's name without what divides types in a way down."""
    found: dict[str, str] = {}
    for sku in supply:
        name = re.sub(r"[./]", "-", sku)
        while name in found.values():
            name += "-"
        found[sku] = name
    return found


def _offering(scheduling: Scheduling) -> Iterator[Supply]:
    yield from (supply for supply in scheduling.supply.values() if supply.machines)


def _physical(scheduling: Scheduling, names: Mapping[str, str]) -> Iterator[str]:
    yield "physicalCluster:"
    yield "  skuTypes:"
    for supply in _offering(scheduling):
        cores, memory = max(1, supply.cpu_millis // 1000), max(1, supply.memory_bytes // 2**20)
        device = {"gpu": 1} if supply.resource else {}
        yield f"    {scalar(names[supply.sku])}: {_flow({**device, 'cpu': cores, 'memory': f'{memory}Mi'})}"
    yield "  cellTypes:"
    for supply in _offering(scheduling):
        leaf, node, pool = _types(names[supply.sku])
        inner: dict[str, Scalar] = {"childCellType": leaf, "childCellNumber": supply.units, "isNodeLevel": True}
        yield f"    {scalar(node)}: {_flow(inner)}"
        outer: dict[str, Scalar] = {"childCellType": node, "childCellNumber": len(supply.machines)}
        yield f"    {scalar(pool)}: {_flow(outer)}"
    yield "  physicalCells:"
    for supply in _offering(scheduling):
        yield f"  - cellType: {scalar(_types(names[supply.sku])[2])}"
        yield "    cellChildren:"
        for machine in supply.machines:
            pin = {"pinnedCellId": machine} if machine in scheduling.pinned else {}
            yield f"    - {_flow({'cellAddress': machine, **pin})}"


def _types(leaf: str) -> tuple[str, str, str]:
    """The types of a device, a machine and all machines, as OpenPAI calls them."""
    return leaf, f"{leaf}-NODE", f"{leaf}-NODE-POOL"


def _virtual(scheduling: Scheduling, names: Mapping[str, str]) -> Iterator[str]:
    yield "virtualClusters:"
    holder = next((one.name for one in scheduling.clusters if one.name == _DEFAULT), "")
    holder = holder or next((one.name for one in scheduling.clusters), "")
    for cluster in scheduling.clusters:
        idle = _idle(scheduling) if cluster.name == holder else ()
        yield f"  {scalar(cluster.name)}:"
        yield from _virtual_cells(cluster, names, idle)
        if cluster.pinned:
            yield "    pinnedCells:"
        for machine in cluster.pinned:
            yield f"    - {_flow({'pinnedCellId': machine})}"


def _idle(scheduling: Scheduling) -> tuple[str, ...]:
    """SKUs of which no virtual cluster has anything."""
    used = {share.sku for cluster in scheduling.clusters for share in cluster.shares}
    used |= {scheduling.sku_of(machine) for machine in scheduling.pinned}
    return tuple(supply.sku for supply in _offering(scheduling) if supply.sku not in used)


def _virtual_cells(cluster: VirtualCluster, names: Mapping[str, str], idle: Collection[str]) -> Iterator[str]:
    if not cluster.shares and not idle:
        yield "    virtualCells: []"
        return
    yield "    virtualCells:"
    for share in cluster.shares:
        leaf, node, pool = _types(names[share.sku])
        way = f"{pool}.{node}" if share.machines else f"{pool}.{node}.{leaf}"
        yield f"    - {_flow({'cellType': way, 'cellNumber': share.machines or share.units})}"
    for sku in idle:
        _, node, pool = _types(names[sku])
        yield f"    - {_flow({'cellType': f'{pool}.{node}', 'cellNumber': 0})}"
