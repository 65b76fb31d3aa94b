"""Virtual clusters as Kueue's objects: one ClusterQueue each, all in one cohort, where what is idle is lent. Pure.

A flavor says which machines an amount is of. Machines that are a virtual cluster's own have a flavor of their own,
which no other queue names; by a label that every worker has, flavors of the others leave them out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pai_install.schedulers.kueue.policies import policies
from pai_install.scheduling import amounts
from pai_install.scheduling.admission import NAMESPACE, namespaces_of
from pai_install.scheduling.amounts import CPU, MEMORY, Amount
from pai_install.scheduling.device_quota import device_quotas
from pai_install.scheduling.model import HOST_LABEL, PRIORITIES, SKU_LABEL, Scheduling, Supply, VirtualCluster

Object = dict[str, Any]

API = "kueue.x-k8s.io/v1beta2"
COHORT = "pai"
# the node label whose value is the virtual cluster whose own a machine is; empty on all others
PINNED_LABEL = "pai-install/pinned"

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_MEANING = {
    "crit": "before everything else",
    "prod": "before tests",
    "test": "the usual one",
    "oppo": "whatever is idle; first to be taken back",
}


def kueue_objects(scheduling: Scheduling) -> Iterator[Object]:
    """All objects, those that others name before them."""
    yield topology(scheduling)
    yield from flavors(scheduling)
    yield from priority_classes()
    yield cohort(scheduling)
    for cluster in scheduling.clusters:
        yield cluster_queue(scheduling, cluster)
        yield from local_queues(cluster)
    yield from device_quotas(scheduling)
    yield from policies(scheduling)


def kueue_labels(scheduling: Scheduling, machine: str) -> Mapping[str, str]:
    """The label by which flavors tell machines of one virtual cluster from those of all."""
    return {PINNED_LABEL: scheduling.pinned.get(machine, "")}


def topology(scheduling: Scheduling) -> Object:
    """The levels, and the machine below them. They cannot be changed: other levels are another topology."""
    labels = [*(level.label for level in scheduling.levels), HOST_LABEL]
    spec = {"levels": [{"nodeLabel": label} for label in labels]}
    return _object("Topology", topology_name(scheduling), spec)


def topology_name(scheduling: Scheduling) -> str:
    """`pai`, and with levels above the machine a sum of their labels, in order."""
    return f"{COHORT}{_sum_of_levels(scheduling)}"


def _sum_of_levels(scheduling: Scheduling) -> str:
    labels = "\n".join(level.label for level in scheduling.levels)
    return f".{hashlib.sha256(labels.encode()).hexdigest()[:8]}" if labels else ""


def flavors(scheduling: Scheduling) -> Iterator[Object]:
    """One per SKU, and one per SKU and virtual cluster that has machines of it as its own."""
    for sku in scheduling.supply:
        yield _flavor(scheduling, sku, None)
        for cluster in _owners(scheduling, sku):
            yield _flavor(scheduling, sku, cluster)


def _owners(scheduling: Scheduling, sku: str) -> Iterator[VirtualCluster]:
    yield from (it for it in scheduling.clusters if amounts.pinned_machines(scheduling, it, sku))


def _flavor(scheduling: Scheduling, sku: str, owner: VirtualCluster | None) -> Object:
    labels = {SKU_LABEL: sku, PINNED_LABEL: owner.name if owner is not None else ""}
    spec = {"nodeLabels": labels, "topologyName": topology_name(scheduling)}
    return _object("ResourceFlavor", flavor_name(scheduling, sku, owner), spec)


def flavor_name(scheduling: Scheduling, sku: str, owner: VirtualCluster | None = None) -> str:
    """The SKU's name, the owner's where machines have one, and the sum of the levels, which it cannot change."""
    own = f".of.{owner.name}" if owner is not None else ""
    return f"{_kubernetes_name(sku)}{own}{_sum_of_levels(scheduling)}"


def _kubernetes_name(sku: str) -> str:
    """An SKU's name as objects are named; two that would become the same stay two."""
    if _NAME.fullmatch(sku):
        return sku
    words = re.sub(r"[^a-z0-9]+", "-", sku.lower()).strip("-")
    return f"{words}-{hashlib.sha256(sku.encode()).hexdigest()[:6]}".strip("-")


def priority_classes() -> Iterator[Object]:
    """OpenPAI's priorities."""
    for name, value in PRIORITIES.items():
        plain = {"apiVersion": API, "kind": "WorkloadPriorityClass", "metadata": {"name": name}}
        yield {**plain, "value": value, "description": _MEANING[name]}


def cohort(scheduling: Scheduling) -> Object:
    """What no virtual cluster is guaranteed, for those who may borrow."""
    quotas = [
        _quotas(scheduling, supply, flavor_name(scheduling, sku), amounts.unassigned(scheduling, sku))
        for sku, supply in _in_order(scheduling)
    ]
    return _object("Cohort", COHORT, {"resourceGroups": _groups(scheduling, quotas)})


def _groups(scheduling: Scheduling, quotas: list[Object]) -> list[Object]:
    """One group: a job's devices, processors and memory are of one flavor."""
    covered = [*amounts.devices_of(scheduling), CPU, MEMORY]
    return [{"coveredResources": covered, "flavors": quotas}] if quotas else []


def _in_order(scheduling: Scheduling) -> list[tuple[str, Supply]]:
    """SKUs as a job tries them that names none: those without devices first, lest it occupies machines with some."""
    return sorted(scheduling.supply.items(), key=lambda item: bool(item[1].resource))


def cluster_queue(scheduling: Scheduling, cluster: VirtualCluster) -> Object:
    """What a virtual cluster is guaranteed, lends and may borrow; what it is owed it takes back from anyone."""
    spec: Object = {
        "cohortName": COHORT,
        "queueingStrategy": "BestEffortFIFO",
        "resourceGroups": _groups(scheduling, list(_cluster_quotas(scheduling, cluster))),
        # its own of another SKU before others' of this one, and what is idle before what is in use
        "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"},
        "preemption": {
            "reclaimWithinCohort": "Any",
            "withinClusterQueue": "LowerPriority",
            "borrowWithinCohort": {"policy": "Never"},
        },
    }
    if cluster.namespaces:  # without a selector no namespace may submit
        within = {"key": NAMESPACE, "operator": "In", "values": list(cluster.namespaces)}
        spec["namespaceSelector"] = {"matchExpressions": [within]}
    return _object("ClusterQueue", cluster.name, spec)


def _cluster_quotas(scheduling: Scheduling, cluster: VirtualCluster) -> Iterator[Object]:
    """Of each SKU the machines of its own before those of all."""
    nothing = Amount()
    for sku, supply in _in_order(scheduling):
        own = amounts.pinned(scheduling, cluster, sku)
        if own.units:
            yield _quotas(scheduling, supply, flavor_name(scheduling, sku, cluster), own, nothing, nothing)
        if cluster.share(sku) is not None:
            limits = amounts.lent(scheduling, cluster, sku), amounts.borrowed(scheduling, cluster, sku)
            given = amounts.guaranteed(scheduling, cluster, sku)
            yield _quotas(scheduling, supply, flavor_name(scheduling, sku), given, *limits)


def _quotas(
    scheduling: Scheduling,
    supply: Supply,
    flavor: str,
    given: Amount,
    lend: Amount | None = None,
    borrow: Amount | None = None,
) -> Object:
    """The quotas of a flavor; without a limit all is lent, or borrowed."""
    devices = amounts.devices_of(scheduling)
    parts = {"nominalQuota": given, "lendingLimit": lend, "borrowingLimit": borrow}
    written = {name: it.resources(supply, devices) for name, it in parts.items() if it is not None}
    names = [*devices, CPU, MEMORY]
    quotas = [{"name": name, **{part: it[name] for part, it in written.items()}} for name in names]
    return {"name": flavor, "resources": quotas}


def local_queues(cluster: VirtualCluster) -> Iterator[Object]:
    """The queue that a job names, in each namespace that may submit: it is called as the virtual cluster."""
    for namespace in cluster.namespaces:
        queue = _object("LocalQueue", cluster.name, {"clusterQueue": cluster.name})
        yield {**queue, "metadata": {"name": cluster.name, "namespace": namespace}}


def kueue_remarks(scheduling: Scheduling) -> Iterator[str]:
    """What Kueue does not keep of what was asked."""
    yield "Kueue counts what jobs of its queues ask for: other pods use cores and memory uncounted"
    for sku in scheduling.supply:
        if scheduling.free(sku) and not any(cluster.share(sku) for cluster in scheduling.clusters):
            yield f"{sku}: no virtual cluster has a share of it, so no job can use it"
    if namespaces_of(scheduling):
        yield from _usual(scheduling)


def _usual(scheduling: Scheduling) -> Iterator[str]:
    named = ", ".join(f"{cluster.name} {cluster.usual}" for cluster in scheduling.clusters)
    yield f"a job that names no priority has 0, between test and oppo: jobs of pai-install name the usual one ({named})"


def _object(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}
