"""Virtual clusters from HiveD's block to the sections of a site and back, as text. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from pai_install.documents.quantity import format_bytes
from pai_install.schedulers.hived.cells import hived_block
from pai_install.schedulers.hived.compile import as_yaml
from pai_install.scheduling.model import PRIORITIES, Priority, Scheduling, Share, Supply
from pai_install.site.model import Site
from pai_install.site_edit.write import flow as list_of
from pai_install.site_edit.write import scalar
from pai_install.system.words import plural

_GUIDE = "docs/virtual-clusters.md"

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
            shares=tuple(_share_in_hived(share, scheduling.supply[share.sku]) for share in cluster.shares),
            highest="crit",
            usual="test",
        )
        for cluster in scheduling.clusters
    )
    return replace(scheduling, backend="hived", clusters=clusters, levels=(), block=None)


def _share_in_hived(share: Share, supply: Supply) -> Share:
    """As many units as whole machines have are whole machines."""
    machines = 0 if share.units % supply.units else share.units // supply.units
    return Share(share.sku, share.units, share.units * supply.memory_bytes, share.units, None, machines)


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
    """The YAML of HiveD that says it, but for what `lost_in_hived` names."""
    return as_yaml(hived_block(scheduling))
