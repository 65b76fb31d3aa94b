"""The ResourceQuota of devices in the namespace of a group. Pure.

The API server counts a pod until it is gone. So a pod of a deleted job counts for as long as it holds its devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pai_install.scheduling import amounts
from pai_install.scheduling.admission import clusters_at
from pai_install.scheduling.model import Scheduling, VirtualCluster

Object = dict[str, Any]

QUOTA = "pai-virtual-clusters"


def quota_object(namespace: str, hard: Mapping[str, str]) -> Object:
    """The ResourceQuota."""
    metadata = {"name": QUOTA, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": dict(hard)}}


def device_quotas(scheduling: Scheduling) -> Iterator[Object]:
    """The most devices that a group may hold at once, with borrowed ones, in each namespace that may submit.

    Only for schedulers whose jobs have no pods while they wait: the quota counts these, too.
    """
    for namespace, clusters in clusters_at(scheduling).items():
        names = amounts.devices_of(scheduling)
        hard = {f"requests.{name}": amounts.count(_most(scheduling, clusters, name)) for name in names}
        if hard:
            yield quota_object(namespace, hard)


def _most(scheduling: Scheduling, clusters: tuple[VirtualCluster, ...], resource: str) -> int:
    """Devices of a resource that these virtual clusters may use together, at most all of them."""
    skus = [sku for sku, supply in scheduling.supply.items() if supply.resource == resource]
    there = sum(scheduling.supply[sku].total for sku in skus)
    found = 0
    for cluster in clusters:
        for sku in skus:
            borrowed = amounts.borrowed(scheduling, cluster, sku)
            found += there if borrowed is None else amounts.owned(scheduling, cluster, sku).units + borrowed.units
    return min(found, there)
