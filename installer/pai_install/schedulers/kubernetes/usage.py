"""Use with Kubernetes' own scheduler: pods in namespaces that are of one virtual cluster. Pure.

A pod names no virtual cluster: where several have a namespace, nothing says whose its pods are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from pai_install.kube.objects import JsonObject, child, text
from pai_install.scheduling.admission import clusters_at
from pai_install.scheduling.model import Scheduling
from pai_install.scheduling.usage.amounts import requests_of_pod, words_of
from pai_install.scheduling.usage.model import SchedulerState, UnfinishedJob
from pai_install.scheduling.usage.pods import alive, full_name, node_of, uses_of

KINDS = ("pods",)


def kubernetes_seen(scheduling: Scheduling, found: Mapping[str, Iterable[JsonObject]]) -> SchedulerState:
    """found: the objects of each of KINDS."""
    owners = owners_of(scheduling)
    unknown = frozenset(it.name for those in clusters_at(scheduling).values() if len(those) > 1 for it in those)
    pods = alive(found["pods"])
    return SchedulerState(
        uses_of(scheduling, pods, lambda pod: owners.get(_namespace(pod))),
        tuple(_jobs(scheduling, pods, owners)),
        unknown,
    )


def owners_of(scheduling: Scheduling) -> Mapping[str, str]:
    """Namespace -> the one virtual cluster that may be used from it."""
    at = clusters_at(scheduling)
    return {namespace: clusters[0].name for namespace, clusters in at.items() if len(clusters) == 1}


def _namespace(pod: JsonObject) -> str:
    return text(child(pod, "metadata").get("namespace"))


def _jobs(scheduling: Scheduling, pods: Iterable[JsonObject], owners: Mapping[str, str]) -> Iterator[UnfinishedJob]:
    """One for all pods of a controller; it waits while none of them has a machine."""
    running: dict[tuple[str, str], bool] = {}
    requested: defaultdict[tuple[str, str], defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for pod in pods:
        if (cluster := owners.get(_namespace(pod))) is not None:
            key, placed = (cluster, full_name(pod)), bool(node_of(pod))
            running[key] = running.get(key, False) or placed
            for name, amount in requests_of_pod(child(pod, "spec")).items():
                requested[key][name] += amount
    for (cluster, name), placed in running.items():
        yield UnfinishedJob(cluster, name, not placed, words_of(scheduling, requested[cluster, name]))
