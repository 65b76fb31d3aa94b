"""A site's sections -> how it divides its workers. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypedDict

from pai_install.scheduling.block_workers import block_workers
from pai_install.scheduling.hived_block import guarantees, remarks
from pai_install.scheduling.model import Level, Scheduling, Share, Supply, UnqueuedLimit, VirtualCluster
from pai_install.site.groups import DEFAULT, PlacedGroup, administrates, groups_of, namespace_of
from pai_install.site.hived_cells import hived_of
from pai_install.site.model import Site
from pai_install.site.rules.scheduling.quotas import memory_of, units_of
from pai_install.site.services.hived import HivedConfig
from pai_install.site.services.virtual_clusters import Portion, QuotaEntry, VirtualClusterEntry
from pai_install.site.workers import OFFERED, Workers, workers_of

__all__ = ["OFFERED", "migrated_of", "remarks_of", "scheduling_of"]


def scheduling_of(site: Site) -> Scheduling | None:
    """Returns the site's division, by its own sections or by HiveD's block, or None without virtual clusters.

    A guarantee may exceed the present machines if some are absent. An absent machine is not pinned. Without the section
    virtual-clusters, one virtual cluster `default` has everything. With HiveD's block, SKUs have the names of the
    block.
    """
    scheduler, entries, config = site.services.scheduler, site.services.virtual_clusters, hived_of(site)
    workers = workers_of(site)
    if scheduler is not None:
        levels = tuple(Level(level.name, level.label) for level in scheduler.topology)
        supply = _supply(workers)
        given = tuple(_of_entry(site, entry, workers) for entry in entries or ())
        return Scheduling(scheduler.type, supply, given or (_whole(site, supply),), levels, **_limits(site))
    if config is None:
        return None
    return _of_block(site, config, block_workers(site, config), block=config.content)


def migrated_of(site: Site) -> Scheduling | None:
    """Returns the same as `scheduling_of`, but HiveD's block by the machine types of the layout, as in the sections.

    Settings of the block without a counterpart are omitted and listed by `remarks_of`.
    """
    config = hived_of(site)
    return scheduling_of(site) if config is None else _of_block(site, config, None)


def _of_block(
    site: Site, config: HivedConfig, workers: Mapping[str, Workers] | None, block: Mapping[str, Any] | None = None
) -> Scheduling:
    clusters = tuple(
        VirtualCluster(found.name, found.shares, found.pinned, *_submitters(site, found.name, ()))
        for found in guarantees(site, config, workers)
    )
    supply = _supply(workers_of(site) if workers is None else workers)
    return Scheduling("hived", supply, clusters, block=block, **_limits(site))


class _Limits(TypedDict):
    unqueued: UnqueuedLimit | None
    device_share: int | None


def _limits(site: Site) -> _Limits:
    jobs = site.services.jobs
    limit = jobs.unqueued if jobs is not None else None
    return {
        "unqueued": UnqueuedLimit(limit.cores, limit.memory) if limit is not None else None,
        "device_share": jobs.device_share_percent if jobs is not None else None,
    }


def remarks_of(site: Site) -> tuple[str, ...]:
    """Returns a sentence for each setting of an active HiveD block that other schedulers do not support."""
    config = hived_of(site)
    return () if config is None else tuple(dict.fromkeys(remarks(site, config)))


def _supply(workers: Mapping[str, Workers]) -> dict[str, Supply]:
    return {
        sku: Supply(sku, one.present, one.resource, one.units, one.cpu_millis, one.memory_bytes)
        for sku, one in workers.items()
    }


def _whole(site: Site, supply: Mapping[str, Supply]) -> VirtualCluster:
    """Returns the virtual cluster with everything, for all groups."""
    shares = (Share(it.sku, it.total, it.total * it.memory_bytes, it.total, None) for it in supply.values())
    groups, namespaces = _submitters(site, DEFAULT, ())
    return VirtualCluster(DEFAULT, tuple(shares), groups=groups, namespaces=namespaces)


def _of_entry(site: Site, entry: VirtualClusterEntry, workers: Mapping[str, Workers]) -> VirtualCluster:
    present = {machine.hostname for machine in site.workers}
    groups, namespaces = _submitters(site, entry.name, entry.groups)
    return VirtualCluster(
        name=entry.name,
        shares=tuple(_share(quota, workers[quota.sku]) for quota in entry.quota),
        pinned=tuple(name for name in entry.pinned if name in present),
        groups=groups,
        namespaces=namespaces,
        highest=entry.priorities.highest,
        usual=entry.priorities.normal,
        pods_per_job=entry.pods_per_job,
    )


def _share(quota: QuotaEntry, workers: Workers) -> Share:
    units = units_of(quota, workers)
    return Share(
        sku=quota.sku,
        units=units,
        memory_bytes=memory_of(quota, workers),
        lend=_number(quota.lend, units) or 0,
        borrow=_number(quota.borrow, None),
        machines=quota.machines or 0,
    )


def _number(portion: Portion, everything: int | None) -> int | None:
    return everything if portion == "all" else 0 if portion == "none" else portion


def _submitters(site: Site, cluster: str, named: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The groups that may submit, in the order of the site, and their namespaces."""
    groups = groups_of(site.services)
    if not groups:
        # A site without groups has its jobs in the namespace default.
        return (), (DEFAULT,)
    allowed = set(named) | set(_by_acls(groups, cluster))
    if allowed:
        # In OpenPAI, administrators may submit to every virtual cluster.
        allowed |= {group.name for group in groups if administrates(group)}
    names = tuple(group.name for group in groups if not allowed or group.name in allowed)
    return names, tuple(map(namespace_of, names))


def _by_acls(groups: tuple[PlacedGroup, ...], cluster: str) -> Iterator[str]:
    """Yields groups with the virtual cluster in their acls, as in OpenPAI."""
    for group in groups:
        if cluster in group.group.extension.acls.virtual_clusters:
            yield group.name
