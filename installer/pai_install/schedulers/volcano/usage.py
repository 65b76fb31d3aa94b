"""Use with Volcano: pods of PodGroups, whose queue is the virtual cluster. Pure.

A queue's status counts resources, not SKUs: so the pods are counted, by the machine that each is on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pai_install.kube.objects import JsonObject, child, quantities, text
from pai_install.scheduling.amounts import CPU, devices_of
from pai_install.scheduling.model import Scheduling
from pai_install.scheduling.usage.amounts import words_of
from pai_install.scheduling.usage.model import SchedulerState, UnfinishedJob
from pai_install.scheduling.usage.pods import ClusterOf, full_name, uses_of

KINDS = ("podgroups.scheduling.volcano.sh", "pods")
_GROUP = "scheduling.k8s.io/group-name"
_WAITS = ("", "Pending", "Inqueue")


def volcano_seen(scheduling: Scheduling, found: Mapping[str, Iterable[JsonObject]]) -> SchedulerState:
    """found: the objects of each of KINDS."""
    groups, pods = (tuple(found[kind]) for kind in KINDS)
    uses = uses_of(scheduling, pods, queue_of(groups))
    return SchedulerState(uses, tuple(_jobs(scheduling, groups)))


def queue_of(groups: Iterable[JsonObject]) -> ClusterOf:
    """By the PodGroup of a pod."""
    queues = {_place(one, text(child(one, "metadata").get("name"))): _queue(one) for one in groups}
    return lambda pod: queues.get(_place(pod, _group(pod)))


def _place(item: JsonObject, name: str) -> tuple[str, str]:
    return text(child(item, "metadata").get("namespace")), name


def _group(pod: JsonObject) -> str:
    return text(child(pod, "metadata", "annotations").get(_GROUP))


def _queue(group: JsonObject) -> str:
    return text(child(group, "spec").get("queue"))


def _jobs(scheduling: Scheduling, groups: Iterable[JsonObject]) -> Iterator[UnfinishedJob]:
    for group in groups:
        phase = text(child(group, "status").get("phase"))
        if phase != "Completed":
            units = words_of(scheduling, _requested(scheduling, group))
            yield UnfinishedJob(_queue(group), full_name(group), phase in _WAITS, units)


def _requested(scheduling: Scheduling, group: JsonObject) -> Mapping[str, float]:
    """What it needs to start; Volcano writes it as of a quota, too."""
    least = quantities(child(group, "spec").get("minResources"))
    names = (*devices_of(scheduling), CPU)
    return {name: least.get(name, least.get(f"requests.{name}", 0.0)) for name in names}
