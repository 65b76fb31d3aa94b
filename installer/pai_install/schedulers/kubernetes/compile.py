"""Virtual clusters with Kubernetes' own scheduler: what it can hold of them, which is a limit per namespace. Pure.

A virtual cluster's quota is divided among the namespaces of its groups, and a namespace has the sum of its parts: all
limits together are never more than the machines have, and what is guaranteed is there. Nothing is lent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pai_install.scheduling import amounts
from pai_install.scheduling.admission import clusters_at
from pai_install.scheduling.amounts import Amount
from pai_install.scheduling.device_quota import QUOTA, quota_object
from pai_install.scheduling.model import Scheduling, VirtualCluster
from pai_install.scheduling.priorities import pod_priorities, priority_policy
from pai_install.scheduling.unqueued import counts_cores

Object = dict[str, Any]

# what a container that says nothing is taken to ask for, where processors and memory are counted
_UNSAID = {"cpu": "100m", "memory": "128Mi"}


def kubernetes_objects(scheduling: Scheduling) -> Iterator[Object]:
    """Priorities, and a quota in each namespace that may submit."""
    yield from pod_priorities(preempts=False)
    for namespace, clusters in clusters_at(scheduling).items():
        yield quota_object(namespace, _hard(scheduling, namespace, clusters))
        if counts_cores(scheduling, clusters):
            yield _limits(namespace)
    yield from priority_policy(scheduling)


def _hard(scheduling: Scheduling, namespace: str, clusters: tuple[VirtualCluster, ...]) -> Mapping[str, str]:
    """Devices of each resource, of all SKUs together; processors and memory where SKUs without devices are shared."""
    parts = {
        sku: sum((_part(scheduling, cluster, namespace, sku) for cluster in clusters), Amount())
        for sku in scheduling.supply
    }
    supply = scheduling.supply
    hard = {
        f"requests.{name}": amounts.count(sum(parts[sku].units for sku in supply if supply[sku].resource == name))
        for name in amounts.devices_of(scheduling)
    }
    if not counts_cores(scheduling, clusters):
        return hard
    total = sum(parts.values(), Amount())
    return {
        **hard,
        "requests.cpu": amounts.cpu(total.cpu_millis),
        "requests.memory": amounts.memory(total.memory_bytes),
    }


def _part(scheduling: Scheduling, cluster: VirtualCluster, namespace: str, sku: str) -> Amount:
    """A namespace's part of a virtual cluster: what cannot be divided is the first ones'."""
    whole = amounts.owned(scheduling, cluster, sku)
    number, among = cluster.namespaces.index(namespace), len(cluster.namespaces)
    units = whole.units // among + (number < whole.units % among)
    return Amount(units, units * scheduling.supply[sku].cpu_millis, whole.memory_bytes * units // max(whole.units, 1))


def _limits(namespace: str) -> Object:
    """A quota of cores refuses containers that do not say what they need: so it is said for them."""
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": QUOTA, "namespace": namespace},
        "spec": {"limits": [{"type": "Container", "defaultRequest": _UNSAID}]},
    }


def kubernetes_remarks(scheduling: Scheduling) -> Iterator[str]:
    """What Kubernetes' own scheduler does not keep of what was asked."""
    yield "jobs do not start whole or not at all: a part of one may hold devices and wait for the rest"
    yield "a higher priority only goes before others that wait: it takes nothing from those that run"
    if any(share.lend or share.borrow != 0 for cluster in scheduling.clusters for share in cluster.shares):
        yield "nothing is lent: what a virtual cluster does not use stays idle, and a pod beyond its quota is refused"
    for cluster in scheduling.clusters:
        yield from _of_cluster(cluster)
    yield from _of_resources(scheduling)
    if not all(counts_cores(scheduling, clusters) for clusters in clusters_at(scheduling).values()):
        yield "cores and memory are limited only where a virtual cluster has a share of machines without devices"
    if scheduling.levels:
        yield f"jobs are not placed by {' or '.join(level.name for level in scheduling.levels)}"


def _of_cluster(cluster: VirtualCluster) -> Iterator[str]:
    if not cluster.namespaces:
        yield f"{cluster.name}: no group may submit, so its quota is nowhere"
    if len(cluster.namespaces) > 1:
        yield f"{cluster.name}: its quota is divided among its groups ({', '.join(cluster.groups)}): one per namespace"
    if cluster.pinned:
        yield f"{cluster.name}: pods of others may run on {', '.join(cluster.pinned)}; they count as quota"


def _of_resources(scheduling: Scheduling) -> Iterator[str]:
    for name in amounts.devices_of(scheduling):
        skus = [sku for sku, supply in scheduling.supply.items() if supply.resource == name]
        if len(skus) > 1:
            yield f"{', '.join(skus)}: one quota of {name} for all of them, as a quota knows no machines"
