"""The usage of placed pods by machine, for schedulers that do not count SKUs. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from pai_install.kube.objects import JsonObject, child, conditions, rows, state_of, text
from pai_install.scheduling.amounts import devices_of
from pai_install.scheduling.model import Scheduling
from pai_install.scheduling.usage.amounts import requests_of_pod, resource_of, units_of, use_of
from pai_install.scheduling.usage.model import Use

_ENDED = ("Succeeded", "Failed")
# whose a pod is: the name of a virtual cluster, or None
ClusterOf = Callable[[JsonObject], str | None]


def has_ended(item: JsonObject) -> bool:
    """Returns whether a pod, or a Workload of Kueue, no longer uses anything."""
    status = child(item, "status")
    return status.get("phase") in _ENDED or state_of(conditions(status.get("conditions")), "Finished") is True


def alive(pods: Iterable[JsonObject]) -> list[JsonObject]:
    """Returns the unfinished pods."""
    return [pod for pod in pods if child(pod, "status").get("phase") not in _ENDED]


def node_of(pod: JsonObject) -> str:
    """Returns the node of a pod, or "" if it is pending."""
    return text(child(pod, "spec").get("nodeName"))


def full_name(item: JsonObject) -> str:
    """Returns an object's name with its namespace, or its controller's name."""
    metadata = child(item, "metadata")
    owners = [text(row.get("name")) for row in rows(metadata.get("ownerReferences")) if row.get("controller")]
    return f"{text(metadata.get('namespace'))}/{(owners or [text(metadata.get('name'))])[0]}"


def devices_in_use(scheduling: Scheduling, pods: Iterable[JsonObject]) -> dict[str, int]:
    """Returns node -> devices of its unfinished pods."""
    found: defaultdict[str, int] = defaultdict(int)
    names = devices_of(scheduling)
    for pod in alive(pods):
        if node := node_of(pod):
            requested = requests_of_pod(child(pod, "spec"))
            found[node] += int(sum(requested.get(name, 0) for name in names))
    return found


def uses_of(scheduling: Scheduling, pods: Iterable[JsonObject], cluster_of: ClusterOf) -> tuple[Use, ...]:
    """Returns the usage of pods per virtual cluster and SKU. The sum of cores is rounded, not each pod."""
    found: defaultdict[tuple[str, str, bool], float] = defaultdict(float)
    for pod in alive(pods):
        cluster, machine = cluster_of(pod), node_of(pod)
        if cluster is not None and machine in scheduling.skus:
            sku = scheduling.skus[machine]
            requested = requests_of_pod(child(pod, "spec")).get(resource_of(scheduling.supply[sku]), 0.0)
            found[cluster, sku, scheduling.pinned.get(machine) == cluster] += requested
    return tuple(_uses(scheduling, found))


def _uses(scheduling: Scheduling, found: Mapping[tuple[str, str, bool], float]) -> Iterator[Use]:
    for cluster in scheduling.clusters:
        for sku, supply in scheduling.supply.items():
            shared, own = (units_of(supply, found.get((cluster.name, sku, pinned), 0.0)) for pinned in (False, True))
            if shared or own:
                yield use_of(cluster, sku, shared, own)
