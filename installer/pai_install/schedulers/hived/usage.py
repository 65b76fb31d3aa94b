"""Use with HiveD: its pods, whose annotation says the virtual cluster and the devices. Pure.

HiveD itself learns what it has given from these pods; so it need not be asked, and may be away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pai_install.kube.objects import JsonObject, child, number, text
from pai_install.scheduling.job_queue import HIVED_SCHEDULER, cells_of, hived_spec
from pai_install.scheduling.model import PRIORITIES, Scheduling
from pai_install.scheduling.usage.model import SchedulerState, UnfinishedJob, Use
from pai_install.scheduling.usage.pods import alive, full_name, node_of

KINDS = ("pods",)


@dataclass(frozen=True, slots=True)
class HivedPod:
    """What a pod of HiveD has or asks for. borrows: by priority oppo. node: "" while it waits."""

    cluster: str
    units: int
    borrows: bool
    job: str
    node: str
    priority: int = 0


def hived_seen(scheduling: Scheduling, found: Mapping[str, Iterable[JsonObject]]) -> SchedulerState:
    """found: the objects of each of KINDS."""
    pods_of_hived = hived_pods(found["pods"])
    return SchedulerState(tuple(_uses(scheduling, pods_of_hived)), tuple(_jobs(pods_of_hived)))


def hived_pods(pods: Iterable[JsonObject]) -> list[HivedPod]:
    """Those of HiveD that have not ended."""
    return [_hived_pod(pod) for pod in alive(pods) if text(_spec(pod).get("schedulerName")).startswith(HIVED_SCHEDULER)]


def _spec(pod: JsonObject) -> JsonObject:
    return child(pod, "spec")


def _hived_pod(pod: JsonObject) -> HivedPod:
    """A pod whose annotation cannot be read uses nothing that HiveD knows of."""
    spec = hived_spec(pod)
    namespace = text(child(pod, "metadata").get("namespace"))
    gang = text(child(spec, "affinityGroup").get("name"))
    return HivedPod(
        cluster=text(_spec(pod).get("schedulerName")).removeprefix(HIVED_SCHEDULER),
        units=cells_of(spec),
        borrows=number(spec.get("priority")) == PRIORITIES["oppo"],
        job=f"{namespace}/{gang.removeprefix(f'{namespace}/')}" if gang else full_name(pod),
        node=node_of(pod),
        priority=number(spec.get("priority")) or 0,
    )


def _uses(scheduling: Scheduling, pods: Iterable[HivedPod]) -> Iterator[Use]:
    """A job of priority oppo has what others leave idle, even while its own guarantee is idle too."""
    total: Counter[tuple[str, str]] = Counter()
    own: Counter[tuple[str, str]] = Counter()
    borrowed: Counter[tuple[str, str]] = Counter()
    for pod in pods:
        if pod.node in scheduling.skus:
            key = pod.cluster, scheduling.skus[pod.node]
            total[key] += pod.units
            if pod.borrows:
                borrowed[key] += pod.units
            elif scheduling.pinned.get(pod.node) == pod.cluster:
                own[key] += pod.units
    known = {cluster.name for cluster in scheduling.clusters}
    yield from (Use(*key, units, own[key], borrowed[key]) for key, units in total.items() if key[0] in known and units)


def _jobs(pods: Iterable[HivedPod]) -> Iterator[UnfinishedJob]:
    """One for all pods of a gang; it waits while none of them has a machine."""
    placed: dict[tuple[str, str], bool] = {}
    units: Counter[tuple[str, str]] = Counter()
    priorities: dict[tuple[str, str], int] = {}
    for pod in pods:
        key = pod.cluster, pod.job
        priorities[key] = pod.priority
        placed[key] = placed.get(key, False) or bool(pod.node)
        units[key] += pod.units
    for (cluster, name), runs in placed.items():
        total = {"devices": units[cluster, name]} if units[cluster, name] else {}
        yield UnfinishedJob(cluster, name, not runs, total, priorities[cluster, name])
