"""Use as Kueue counts it: reserved quota of ClusterQueues, and Workloads. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from pai_install.kube.objects import JsonObject, child, conditions, number, quantity, rows, state_of, text
from pai_install.schedulers.kueue.compile import flavor_name
from pai_install.scheduling.model import Scheduling, VirtualCluster
from pai_install.scheduling.usage.amounts import requests_of_pod, resource_of, units_of, use_of, words_of
from pai_install.scheduling.usage.model import SchedulerState, UnfinishedJob, Use
from pai_install.scheduling.usage.pods import full_name

KINDS = ("clusterqueues.kueue.x-k8s.io", "workloads.kueue.x-k8s.io")


def kueue_seen(scheduling: Scheduling, found: Mapping[str, Iterable[JsonObject]]) -> SchedulerState:
    """found: the objects of each of KINDS."""
    queues, workloads = (found[kind] for kind in KINDS)
    statuses = {text(child(one, "metadata").get("name")): child(one, "status") for one in queues}
    uses = (use for it in scheduling.clusters for use in _uses(scheduling, it, statuses.get(it.name, {})))
    return SchedulerState(tuple(uses), tuple(_jobs(scheduling, workloads)))


def _uses(scheduling: Scheduling, cluster: VirtualCluster, status: JsonObject) -> Iterator[Use]:
    taken = {text(row.get("name")): row for row in rows(status.get("flavorsReservation"))}
    for sku in scheduling.supply:
        shared = _taken(scheduling, sku, taken.get(flavor_name(scheduling, sku), {}))
        own = _taken(scheduling, sku, taken.get(flavor_name(scheduling, sku, cluster), {}))
        if shared or own:
            yield use_of(cluster, sku, shared, own)


def _taken(scheduling: Scheduling, sku: str, flavor: JsonObject) -> int:
    """Units of a flavor, `total` with what is borrowed."""
    supply = scheduling.supply[sku]
    totals = {text(row.get("name")): quantity(row.get("total")) for row in rows(flavor.get("resources"))}
    return units_of(supply, totals.get(resource_of(supply)) or 0.0)


def _jobs(scheduling: Scheduling, workloads: Iterable[JsonObject]) -> Iterator[UnfinishedJob]:
    for workload in workloads:
        spec, status = child(workload, "spec"), child(workload, "status")
        states = conditions(status.get("conditions"))
        waits = state_of(states, "QuotaReserved") is not True
        if state_of(states, "Finished") is True or (waits and spec.get("active") is False):
            continue
        # a queue that jobs name is called as its virtual cluster
        cluster = text(child(status, "admission").get("clusterQueue")) or text(spec.get("queueName"))
        units, priority = words_of(scheduling, _requested(spec)), number(spec.get("priority")) or 0
        yield UnfinishedJob(cluster, full_name(workload), waits, units, priority)


def _requested(spec: JsonObject) -> Mapping[str, float]:
    total: defaultdict[str, float] = defaultdict(float)
    for pods in rows(spec.get("podSets")):
        count = number(pods.get("count"))
        for name, amount in requests_of_pod(child(pods, "template", "spec")).items():
            total[name] += amount * (1 if count is None else count)
    return total
