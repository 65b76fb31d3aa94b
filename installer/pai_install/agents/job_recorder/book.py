"""State of all pods with devices, and the lines of the ledger that follow from it. Pure.

Every control plane keeps a book of its own, whether it holds the Lease or not.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from typing import Callable

from pai_install.agents.common.ledger import (
    ALIVE_S,
    COMPLETED,
    PREEMPTED,
    Hold,
    Ledger,
    Quota,
    Sample,
    line_of,
    line_of_quota,
    line_of_sample,
    line_of_time,
)
from pai_install.agents.common.values import Json, meta
from pai_install.agents.job_recorder import objects
from pai_install.agents.job_recorder.admissions import (
    CLUSTER_QUEUES,
    WORKLOADS,
    Admission,
    QueuedJob,
    admission_of,
    cluster_of,
    job_in_queue,
    joins,
    owner_of_workload,
    queued_by_volcano,
    quota_of,
)
from pai_install.agents.job_recorder.holds import (
    End,
    created_of,
    devices_of,
    end_of,
    node_of,
    sample_of,
    start_of,
)
from pai_install.agents.job_recorder.store import PODS

# seconds: that a pod waits for the object of its job, between two samples of one pod, and that the scheduler has to
# say why a pod ended
_JOB_S, _SAMPLE_S, _REASON_S = 15, 3600, 30
# namespace, user, group of the kind, name
_Key = tuple[str, str, str, str]


@dataclass
class _Pod:
    """A pod with devices. seen_at: when it was first seen. written, sampled: what is in the file."""

    hold: Hold
    key: _Key = ("", "", "", "")
    place: str = ""
    created: int = 0
    seen_at: float = 0
    sample: Sample | None = None
    written: str = ""
    ended_at: float | None = None
    sampled: Sample | None = None

    def end(self, end: End, now: float) -> None:
        """The pod lost its devices."""
        at = max(end.at, self.hold.start)
        self.hold = replace(self.hold, end=at, reason=end.reason, estimated=end.estimated)
        self.ended_at = now


class Book:
    """All pods with devices. sku_of: the SKU of a node, "" for an unknown one. ledger: that of earlier runs."""

    def __init__(self, namespaces: frozenset[str], sku_of: Callable[[str], str], ledger: Ledger) -> None:
        self._namespaces, self._sku_of = namespaces, sku_of
        self._pods: dict[str, _Pod] = {}
        self._jobs: dict[_Key, QueuedJob] = {}
        self._admissions: dict[tuple[str, str, str], Admission] = {}
        # jobs and Workloads that are gone, while pods of theirs may still be there
        self._gone: set[tuple[str, ...]] = set()
        self._joined: dict[tuple[_Key, str, int], str] = {}
        self._quotas: dict[str, Quota] = {}
        self._written_quotas = set(ledger.quotas)
        self._ended = {uid for uid, hold in ledger.holds.items() if hold.end is not None}
        self._open = {uid: hold for uid, hold in ledger.holds.items() if hold.end is None}
        self._alive = ledger.alive

    # what the API server says

    def see(self, resource: str, item: Json, now: float, *, gone: bool = False) -> None:
        """An object as it is now. gone: it was deleted, and this is its last state."""
        if resource == CLUSTER_QUEUES:
            if (quota := quota_of(item)) is not None and not gone:
                self._quotas[quota.cluster] = quota
        elif meta(item, "namespace") in self._namespaces:
            if resource == WORKLOADS:
                self._see_workload(item, gone=gone)
            elif objects.is_job(item):
                self._see_job(item, gone=gone)
            if resource == PODS and objects.owner_of(item):
                self._see_pod(item, now, gone=gone)

    def retain(self, resource: str, uids: Container[str], now: float) -> None:
        """Pods with other UIDs were deleted while no watch was open."""
        if resource != PODS:
            return
        for uid, pod in self._pods.items():
            if uid not in uids and pod.hold.end is None:
                # Nobody saw the end. The last time at which this program worked is the earliest possible one.
                pod.end(End(int(min(self._alive or now, now)), "", estimated=True), now)
        for uid, hold in self._open.items():
            if uid not in uids:
                lost = self._pods[uid] = _Pod(replace(hold, samples=()))
                lost.end(End(hold.seen, "", estimated=True), now)
        # The first list after the start tells which pods of the old files still run. Later ones are of this run.
        self._open = {}
        self._ended = {uid for uid in self._ended if uid in uids}

    def _see_workload(self, workload: Json, *, gone: bool) -> None:
        key = owner_of_workload(workload)
        if key[2]:
            self._admissions[key] = admission_of(workload, self._admissions.get(key))
            (self._gone.add if gone else self._gone.discard)(key)

    def _see_job(self, job: Json, *, gone: bool) -> None:
        key = _key(job)
        self._jobs[key] = job_in_queue(job)
        (self._gone.add if gone else self._gone.discard)(key)

    def _see_pod(self, pod: Json, now: float, *, gone: bool) -> None:
        uid = meta(pod, "uid")
        # A list after a lost watch shows pods again whose end is in the file already.
        if uid in self._ended:
            return
        known = self._pods.get(uid) or self._new_pod(pod, now)
        if known is None:
            return
        known.sample = sample_of(pod) or known.sample
        if known.hold.end is None and (end := end_of(pod, known.hold.start, now, deleted=gone)) is not None:
            known.end(end, now)

    def _new_pod(self, pod: Json, now: float) -> _Pod | None:
        uid, start, devices, node = meta(pod, "uid"), start_of(pod, now), devices_of(pod), node_of(pod)
        if not uid or start is None or not devices:
            return None
        self._open.pop(uid, None)
        hold = Hold(
            uid,
            devices,
            start,
            namespace=meta(pod, "namespace"),
            pod=meta(pod, "name"),
            user=objects.owner_of(pod),
            cluster=cluster_of(pod),
            node=node,
            sku=self._sku_of(node),
        )
        self._pods[uid] = _Pod(hold, _key(pod), objects.pod_key(pod), created_of(pod), now)
        return self._pods[uid]

    # what is to be written

    def due(self, now: float) -> list[str]:
        """Returns the lines to append now. They count as written, except by `again`."""
        lines = [line_of_quota(quota) for quota in self._quotas.values() if quota not in self._written_quotas]
        self._written_quotas.update(self._quotas.values())
        for pod in self._pods.values():
            lines += self._lines_of(pod, now)
        # A clock that was set back counts as late, so that the file has no gap.
        if not 0 <= now - self._alive < ALIVE_S:
            self._alive = int(now)
            lines.append(line_of_time(self._alive))
        return lines

    def again(self) -> None:
        """Everything that goes on is due again: its lines could not be written, or a new file begins."""
        self._written_quotas.clear()
        self._alive = 0
        for pod in self._pods.values():
            pod.written, pod.sampled = "", None

    def forget(self, now: float) -> None:
        """Drops what has ended and was written, and jobs without pods."""
        ended = [uid for uid, pod in self._pods.items() if pod.ended_at is not None and now - pod.ended_at > _REASON_S]
        for uid in ended:
            del self._pods[uid]
            self._ended.add(uid)
        used = {pod.key for pod in self._pods.values()}
        idle = self._gone - used - {(key[0], *key[2:]) for key in used}
        # A Workload goes before the pods of its job. Their lines still need its times.
        self._gone -= idle
        self._jobs = {key: job for key, job in self._jobs.items() if key not in idle}
        self._admissions = {key: one for key, one in self._admissions.items() if key not in idle}
        self._joined = {mark: uid for mark, uid in self._joined.items() if mark[0] in self._jobs}

    def _lines_of(self, pod: _Pod, now: float) -> Iterator[str]:
        # Watches of pods and jobs are not in step. A line without its job would have to be written twice.
        if not self._complete(pod) and pod.hold.end is None and now - pod.seen_at < _JOB_S:
            return
        sample, before = pod.sample, pod.sampled
        ended = pod.hold.end is not None
        if sample not in (None, before) and (ended or before is None or sample.at - before.at >= _SAMPLE_S):
            pod.sampled = sample
            yield line_of_sample(pod.hold.uid, sample)
        if (line := line_of(pod.hold)) != pod.written:
            pod.written = line
            yield line

    def _complete(self, pod: _Pod) -> bool:
        """Adds what the job of the pod says. Returns False before it was seen. A job of another user says nothing."""
        job, admission = self._jobs.get(pod.key), self._admissions.get((pod.key[0], *pod.key[2:]), Admission())
        if job is None:
            return False
        hold = replace(
            pod.hold,
            job=pod.key[3],
            job_uid=job.uid,
            cluster=admission.cluster or pod.hold.cluster or job.cluster,
            flavor=admission.flavor,
            priority=admission.priority or job.priority,
            queued=pod.hold.queued if pod.hold.queued is not None else self._queued(pod, job, admission),
        )
        taken = admission.preempted
        # Kueue suspends a job to take its devices, so its pods only look stopped.
        if taken is not None and hold.end is not None and hold.start <= taken <= hold.end and hold.reason != COMPLETED:
            hold = replace(hold, reason=PREEMPTED)
        pod.hold = hold
        return True

    def _queued(self, pod: _Pod, job: QueuedJob, admission: Admission) -> int | None:
        created, start = pod.created or None, pod.hold.start
        if admission == Admission():
            return queued_by_volcano(job.phases, pod.created, start) or created
        if admission.admitted is None:
            return None
        if joins(pod.created, start, admission):
            # A replacement of a failed pod did not wait in the queue. Only the first pod of a place did.
            first = self._joined.setdefault((pod.key, pod.place, admission.admitted), pod.hold.uid)
            if first == pod.hold.uid:
                return admission.queued
        return created


def _key(item: Json) -> _Key:
    return (meta(item, "namespace"), objects.owner_of(item), *objects.job_of(item))
