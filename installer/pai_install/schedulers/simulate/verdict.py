"""A job, the compiled policy and the cluster -> where the job would go, or what keeps it. Pure.

Before the scheduler sees a job the API server has its say: queues, priorities and namespaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from pai_install.schedulers.simulate.default import default_verdict
from pai_install.schedulers.simulate.hived import hived_verdict
from pai_install.schedulers.simulate.kueue import kueue_verdict
from pai_install.schedulers.simulate.model import ClusterNow, Forecast, NewJob
from pai_install.schedulers.simulate.volcano import volcano_verdict
from pai_install.scheduling.admission import allowed, clusters_at
from pai_install.scheduling.model import PRIORITIES, Backend, Scheduling, VirtualCluster

_Rules = Callable[[Scheduling, ClusterNow, VirtualCluster, NewJob, int], Forecast]
_RULES: Mapping[Backend, _Rules] = {
    "kueue": kueue_verdict,
    "volcano": volcano_verdict,
    "default": default_verdict,
    "hived": hived_verdict,
}
_NAMED_BY: Mapping[Backend, str] = {
    "kueue": "the label kueue.x-k8s.io/queue-name",
    "volcano": "spec.queue",
    "hived": "the schedulerName hivedscheduler-ds-NAME of its pods",
    "default": "its namespace",
}
_QUEUED = ("Job", "JobSet")
_WHOLE = "Volcano Job"
# what a job has that names no priority
_NO_PRIORITY = 0


def simulate(scheduling: Scheduling, snapshot: ClusterNow, gang: NewJob) -> tuple[NewJob, Forecast]:
    """The job as it is understood, with virtual cluster and namespace, and what becomes of it."""
    gang, notes = _settled(scheduling, gang)
    refused = tuple(_refusals(scheduling, gang))
    if refused:
        return gang, Forecast("refused", refused, notes=notes)
    number = gang.number if gang.number is not None else PRIORITIES.get(gang.priority, _NO_PRIORITY)  # type: ignore[call-overload]
    verdict = _RULES[scheduling.backend](scheduling, snapshot, scheduling.cluster(gang.cluster), gang, number)
    return gang, replace(verdict, notes=(*notes, *verdict.notes, *_others(snapshot, gang, verdict)))


def _settled(scheduling: Scheduling, gang: NewJob) -> tuple[NewJob, tuple[str, ...]]:
    """What the job leaves open, as far as there is one answer; with a sentence for each."""
    notes: list[str] = []
    if scheduling.backend == "default" and not gang.cluster:
        at = clusters_at(scheduling).get(gang.namespace, ())
        gang = replace(gang, cluster=at[0].name) if at else gang
    known = next((it for it in scheduling.clusters if it.name == gang.cluster), None)
    if known is not None and not gang.namespace and known.namespaces:
        gang = replace(gang, namespace=known.namespaces[0])
        notes.append(f"it names no namespace: {gang.namespace} is taken")
    if scheduling.backend == "volcano" and gang.kind != _WHOLE and gang.pods > 1:
        notes.append(f"Volcano starts its own Jobs whole: pods of a {gang.kind} may start one by one")
    if not gang.priority and gang.number is None and scheduling.backend in {"kueue", "volcano"}:
        notes.append("it names no priority: that counts as 0, between test and oppo")
    return gang, tuple(notes)


def _refusals(scheduling: Scheduling, gang: NewJob) -> Iterator[str]:
    """What the API server says no to, or no queue answers."""
    names = ", ".join(it.name for it in scheduling.clusters)
    known = next((it for it in scheduling.clusters if it.name == gang.cluster), None)
    if known is None:
        what = f"{gang.cluster} is no virtual cluster" if gang.cluster else "it names no virtual cluster"
        yield f"{what}, and has to name one of {names} by {_NAMED_BY[scheduling.backend]} (or --vc)"
        return
    if gang.namespace not in known.namespaces:
        who = ", ".join(known.namespaces) or "none"
        where = gang.namespace or "none"
        yield f"jobs of {known.name} are in the namespaces of its groups ({who}), this one is in {where}"
    if scheduling.backend == "kueue" and gang.kind not in _QUEUED:
        yield f"Kueue queues {' and '.join(_QUEUED)}s here: a {gang.kind} that asks for devices is refused"
    if gang.priority and gang.priority not in allowed(known) and gang.number is None:
        few = ", ".join(allowed(known))
        yield f"{known.name} allows no jobs of priority {gang.priority}, only {few}"
    elif gang.number is not None and gang.number > PRIORITIES[known.highest]:
        highest = f"{PRIORITIES[known.highest]} ({known.highest})"
        yield f"{known.name} allows no jobs of priority {gang.number}: the highest is {highest}"


def _others(snapshot: ClusterNow, gang: NewJob, verdict: Forecast) -> Iterator[str]:
    waiting = snapshot.waiting.get(gang.cluster, 0)
    if waiting and verdict.outcome in {"starts", "takes-back"}:
        who = "1 job waits" if waiting == 1 else f"{waiting} jobs wait"
        yield f"{who} in {gang.cluster} already: one of the same or a higher priority that fits goes first"
    if any(not job.on for job in snapshot.jobs):
        yield "jobs that have quota and no pods on machines yet are counted for the quota, not for the room"
