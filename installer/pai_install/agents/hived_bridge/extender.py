"""kube-scheduler's three calls: each goes to HiveD, and HiveD's answer comes back as it is."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from pai_install.agents.common.http import HttpError, Response
from pai_install.agents.common.log import Log
from pai_install.agents.hived_bridge.eviction import Eviction
from pai_install.agents.hived_bridge.hived import Hived
from pai_install.agents.hived_bridge.messages import (
    PodCall,
    RefusedError,
    Verdict,
    bind_call,
    chosen_nodes,
    filter_call,
    held,
    preempt_call,
    preemption_of,
    verdict,
    victims,
    with_nodes,
)
from pai_install.agents.hived_bridge.metrics import Metrics

_MOST_WAITING = 50_000
# how often HiveD is asked for a pod that its informer has not seen yet
_UNINFORMED_RETRIES = 3


class Waiting:
    """UIDs of pods that HiveD lets wait; the oldest are forgotten when there are too many."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._uids: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, uid: str) -> bool:
        with self._lock:
            return uid in self._uids

    def note(self, uid: str, *, waits: bool) -> None:
        """Remembers that a pod waits, or forgets it."""
        with self._lock:
            self._uids.pop(uid, None)
            if waits:
                self._uids[uid] = None
                while len(self._uids) > _MOST_WAITING:
                    self._uids.popitem(last=False)


@dataclass
class Extender:
    """delay_s: how far HiveD's informer may be behind kube-scheduler's. sleep: tests give another."""

    hived: Hived
    eviction: Eviction
    metrics: Metrics
    log: Log
    delay_s: float
    sleep: Callable[[float], None] = time.sleep
    waiting: Waiting = field(default_factory=Waiting)

    def answer(self, verb: str, body: bytes) -> Response:
        """Raises RefusedError for a body that is not kube-scheduler's; KeyError for another verb."""
        started = time.monotonic()
        try:
            answer, outcome = {"filter": self._filter, "preempt": self._preempt, "bind": self._bind}[verb](body)
        except RefusedError:
            self.metrics.add("hived_bridge_calls_total", verb=verb, outcome="refused")
            raise
        self.metrics.add("hived_bridge_calls_total", verb=verb, outcome=outcome)
        self.metrics.observe("hived_bridge_call_seconds", time.monotonic() - started, verb=verb)
        return answer

    def _filter(self, body: bytes) -> tuple[Response, str]:
        call = filter_call(body)
        if call.uid in self.waiting:
            # woken by a deletion that HiveD may not have seen yet; it would sleep on for minutes
            self._delay("waiting")
        answer, meaning = self._filtered(self._with_places_of_gang(call, body))
        self.waiting.note(call.uid, waits=meaning in ("wait", "preempt"))
        # kube-scheduler did not offer these nodes, so they lack cores, memory, or a label for the pod.
        if meaning == "placed" and (full := chosen_nodes(answer) - frozenset(call.nodes)):
            return held(full), "held"
        if meaning == "preempt":
            self._make_room(call)
        return answer, meaning

    def _with_places_of_gang(self, call: PodCall, body: bytes) -> bytes:
        """The call with all nodes on which the pod's gang has its cells.

        HiveD never moves a gang. It binds a pod by itself if kube-scheduler does not offer the node of its cells, and
        the kubelet then refuses the pod: HiveD counts neither cores nor memory.
        """
        try:
            gang = self.hived.gang(call.gang)
        except HttpError:
            return body  # the next call says it
        return body if gang is None or gang.nodes <= frozenset(call.nodes) else with_nodes(body, sorted(gang.nodes))

    def _filtered(self, body: bytes) -> tuple[Response, Verdict]:
        """HiveD's answer; asked again while its informer has not seen the pod."""
        try:
            answer = self.hived.extend("filter", body)
            for _ in range(_UNINFORMED_RETRIES):
                # An error would send the pod into kube-scheduler's back-off of up to ten seconds.
                if verdict(answer) != "uninformed":
                    break
                self._delay("uninformed")
                answer = self.hived.extend("filter", body)
            meaning = verdict(answer)
        except (HttpError, RefusedError) as error:
            return self._apology("filter", error), "error"
        return answer, meaning

    def _make_room(self, call: PodCall) -> None:
        """What kube-scheduler does not do where the pod would fit in all that Kubernetes counts."""
        try:
            named = victims(self.hived.extend("preempt", preemption_of(call)))
        except (HttpError, RefusedError) as error:
            self.log("HiveD does not say whom to evict", reason=str(error))
            return
        if named:
            self.eviction.evict(named, call.job)

    def _preempt(self, body: bytes) -> tuple[Response, str]:
        call = preempt_call(body)
        try:
            answer = self.hived.extend("preempt", body)
            named = victims(answer) if answer.status == 200 else {}
        except (HttpError, RefusedError) as error:
            # this call has no field for an error
            return Response(503, self._apology("preempt", error).body), "error"
        if named:
            # kube-scheduler deletes those of one node; their gangs go with them
            self.eviction.evict(named, call.job)
        return answer, "victims" if named else "error" if answer.status != 200 else "none"

    def _bind(self, body: bytes) -> tuple[Response, str]:
        uid = bind_call(body)
        try:
            answer = self.hived.extend("bind", body)
        except HttpError as error:
            return self._apology("bind", error), "error"
        self.waiting.note(uid, waits=False)
        return answer, "answered" if answer.status == 200 else "error"

    def _delay(self, reason: str) -> None:
        if self.delay_s > 0:
            self.metrics.add("hived_bridge_delays_total", reason=reason)
            self.sleep(self.delay_s)

    def _apology(self, verb: str, error: Exception) -> Response:
        """An error as kube-scheduler reads it, and shows it in the pod's events."""
        self.log("HiveD did not answer", verb=verb, reason=str(error))
        return Response(200, json.dumps({"Error": f"hived-bridge: HiveD did not answer: {error}"}).encode())
