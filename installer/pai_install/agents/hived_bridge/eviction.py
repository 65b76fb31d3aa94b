"""Evicts what HiveD names, whole gangs at a time.

HiveD names the victims of one node per call and means their gangs; the rest it would name call by call. Which pods
belong to them is HiveD's own list of affinity groups. Nothing is deleted before all of them are known.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass
from typing import TypeVar

from pai_install.agents.common.api import ApiError
from pai_install.agents.common.http import HttpError
from pai_install.agents.common.log import Log
from pai_install.agents.hived_bridge.cluster import Cluster, Pod
from pai_install.agents.hived_bridge.hived import Hived
from pai_install.agents.hived_bridge.messages import Gang
from pai_install.agents.hived_bridge.metrics import Metrics

Victims = Mapping[str, frozenset[str]]
T = TypeVar("T")
_AT_ONCE = 8
_TRIES = 3
_PAUSE_S = 0.2
# bound to no node: HiveD has given it cells, and its binding is under way
_UNBOUND = ""


@dataclass(frozen=True)
class EvictionTargets:
    """Who goes. pods: UIDs. nodes: where they are. gangs: names of those that go whole."""

    pods: frozenset[str]
    nodes: frozenset[str]
    gangs: tuple[str, ...] = ()


def wanted(victims: Victims, gangs: Iterable[Gang]) -> EvictionTargets:
    """The pods that were named and all of their gangs."""
    named: frozenset[str] = frozenset().union(*victims.values())
    hit = [gang for gang in gangs if gang.pods & named]
    return EvictionTargets(
        named.union(*(gang.pods for gang in hit)),
        frozenset(victims).union(*(gang.nodes for gang in hit)),
        tuple(sorted(gang.name for gang in hit)),
    )


class Eviction:
    """Evicts one set of victims at a time. wait_s: how long a caller waits for it; it ends by itself in any case."""

    def __init__(self, hived: Hived, cluster: Cluster, metrics: Metrics, log: Log, wait_s: float) -> None:
        self._hived, self._cluster, self._metrics, self._log = hived, cluster, metrics, log
        self._wait_s = wait_s
        self._turns = ThreadPoolExecutor(1, "eviction")
        self._deletions = ThreadPoolExecutor(_AT_ONCE, "deletion")
        self._lock = threading.Lock()
        self._under_way: dict[frozenset[str], Future[None]] = {}

    def evict(self, victims: Victims, job: str) -> bool:
        """Evicts the gangs of those pods for a job. False: it is still under way, and goes on."""
        named: frozenset[str] = frozenset().union(*victims.values())
        try:
            self._begun(named, victims, job).result(self._wait_s)
        except LateError:
            self._log("eviction goes on", pods=len(named))
            return False
        return True

    def close(self) -> None:
        """Waits for what is under way."""
        self._turns.shutdown(wait=True)
        self._deletions.shutdown(wait=True)

    def _begun(self, named: frozenset[str], victims: Victims, job: str) -> Future[None]:
        """One turn for the same pods, however often they are named meanwhile."""
        with self._lock:
            known = self._under_way.get(named)
            if known is None or known.done():
                known = self._turns.submit(self._evict, victims, job)
                self._under_way = {key: turn for key, turn in self._under_way.items() if not turn.done()}
                self._under_way[named] = known
            return known

    def _evict(self, victims: Victims, job: str) -> None:
        who = wanted(victims, self._gangs())
        try:
            pods = _retried(lambda: self._find(who))
        except ApiError as error:
            self._log("nothing is evicted: the pods cannot be found", reason=str(error), pods=len(who.pods))
            self._metrics.add("hived_bridge_evictions_total", len(who.pods), outcome="failed")
            return
        left = [pod for pod in pods if not pod.deleting]
        cause = f"HiveD gave its devices to the job {job}"
        outcomes = list(self._deletions.map(lambda pod: self._delete(pod, cause), left))
        if left:
            self._metrics.add("hived_bridge_gangs_evicted_total", max(len(who.gangs), 1))
            shown = [f"{pod.namespace}/{pod.name}" for pod in left[:50]]
            self._log("evicted", gangs=list(who.gangs), pods=shown, failed=outcomes.count("failed"))

    def _gangs(self) -> tuple[Gang, ...]:
        """Returns () where HiveD cannot list them: it names the rest of a gang in its next answers."""
        try:
            return self._hived.gangs()
        except HttpError as error:
            self._log("HiveD does not list its gangs: they go node by node", reason=str(error))
            return ()

    def _find(self, who: EvictionTargets) -> list[Pod]:
        """Those of the pods that exist. Raises ApiError."""
        found = {pod.uid: pod for node in sorted(who.nodes) for pod in self._cluster.pods_on(node)}
        # The list of all pods without a node is long where many jobs wait, so it is read only if a pod is missing.
        if not who.pods <= found.keys():
            found |= {pod.uid: pod for pod in self._cluster.pods_on(_UNBOUND)}
        return [found[uid] for uid in sorted(who.pods & found.keys())]

    def _delete(self, pod: Pod, cause: str) -> str:
        try:
            outcome = "evicted" if _retried(lambda: self._cluster.preempt(pod, cause)) else "gone"
        except ApiError as error:
            self._log("a pod is not evicted", pod=f"{pod.namespace}/{pod.name}", reason=str(error))
            outcome = "failed"
        self._metrics.add("hived_bridge_evictions_total", outcome=outcome)
        return outcome


def _retried(request: Callable[[], T]) -> T:
    """Asks the API server up to three times. Raises ApiError."""
    for attempt in range(1, _TRIES):
        try:
            return request()
        except ApiError:
            time.sleep(_PAUSE_S * attempt)
    return request()
