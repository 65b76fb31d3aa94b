"""Runs it: holds the Lease, watches jobs and their pods, reads last lines, writes records and drops old ones.

Beside that it lets go of pods of lost machines, and does what the site says of jobs that have their GPUs for nothing.
"""

from __future__ import annotations

import http
import os
import queue
import signal
import socket
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Union
from urllib.parse import quote

from job_recorder import settings
from job_recorder.cluster import Cluster, ClusterError
from job_recorder.deeds import Doer
from job_recorder.idle import Idle
from job_recorder.lease import LASTING_S, RENEW_S, Lease
from job_recorder.lost import Lost, Release, is_lost
from job_recorder.memory import AT_ONCE, PODS, Action, Drop, Memory, Read, WriteLogs, WriteState
from job_recorder.records import LOGS, RECORD, STATE, logs_map, name_of, read_record, state_map
from job_recorder.settings import Settings
from job_recorder.shapes import Json, child, meta
from job_recorder.watching import Changed, Listed, Told, Watcher

CONFIGURATION = Path("/etc/pai-install/job-recorder.json")
# of a log that is read
_LINES = 400
# The token lasts a day; systemd starts the program again, with a new one.
_LASTING_S = 12 * 3600


@dataclass(frozen=True)
class LogRead:
    """What came of reading a log."""

    asked: Read
    lines: str | None


@dataclass
class Recorder:
    """The program, once it holds the Lease. complain: takes a line for the journal."""

    cluster: Cluster
    given: Settings
    complain: Callable[[str], None]
    events: queue.Queue[Union[Told, LogRead]] = field(default_factory=queue.Queue)

    def __post_init__(self) -> None:
        self.memory = Memory(self.given.rules)
        self.lost = Lost(self.given.rules.namespaces)
        self.idle = Idle(self.given.rules.namespaces, self.given.limits)
        self._doer = Doer(self.cluster, self.complain)
        self._pool = ThreadPoolExecutor(AT_ONCE)

    def recall(self, now: float) -> None:
        """What was kept before. Raises ClusterError."""
        for namespace in sorted(self.given.rules.namespaces):
            logs: dict[str, dict[str, str]] = {}
            for item in self._maps(namespace, LOGS):
                logs[meta(item, "name")] = {str(pod): str(lines) for pod, lines in child(item, "data").items()}
            for item in self._maps(namespace, STATE):
                if (record := read_record(item)) is not None:
                    self.memory.recall(record, logs.get(f"{name_of(record.job)}.{LOGS}", {}), now)

    def _maps(self, namespace: str, what: str) -> list[Json]:
        pages = self.cluster.pages(_maps_path(namespace), {"labelSelector": f"{RECORD}={what}"})
        return [item for page in pages for item in page.get("items") or ()]

    def watch(self) -> None:
        """Starts to be told."""
        for resource in (PODS, *self.given.kinds):
            Watcher(self.cluster, resource, self.events.put, self.complain).start()

    def step(self, wait_s: float, now: Callable[[], float] = time.time) -> None:
        """Takes what was told meanwhile, then does what is due."""
        try:
            self._take(self.events.get(timeout=wait_s), now())
            while True:
                self._take(self.events.get_nowait(), now())
        except queue.Empty:
            pass
        for action in self.memory.due(now()):
            self._do(action, now)
        for release in self.lost.due(now()):
            self._release(release)
        for deed in self.idle.due(now()):
            self._doer.do(deed)

    def _take(self, told: Union[Told, LogRead], now: float) -> None:
        if isinstance(told, LogRead):
            self.memory.log_read(told.asked, told.lines, now)
        elif isinstance(told, Listed):
            self.idle.listed(told.resource, told.items)
            if told.resource == PODS:
                self.memory.pods_listed(told.items, now)
                self.lost.listed(told.items)
            else:
                self.memory.jobs_listed(told.resource, told.items, now)
        elif isinstance(told, Changed):
            pods, jobs = (self.memory.see_pod, self.memory.pod_gone), (self.memory.see_job, self.memory.job_gone)
            (pods if told.resource == PODS else jobs)[told.gone](told.item, now)
            if told.resource == PODS:
                (self.lost.gone if told.gone else self.lost.see)(told.item)
            if told.gone:
                self.idle.gone(told.item)
            else:
                self.idle.see(told.resource, told.item)

    def _do(self, action: Action, now: Callable[[], float]) -> None:
        if isinstance(action, Read):
            self._pool.submit(self._read, action)
            return
        try:
            if isinstance(action, WriteState):
                self._put(state_map(action.record))
            elif isinstance(action, WriteLogs):
                self._put(logs_map(action.job, action.logs))
            elif isinstance(action, Drop):
                path, name = _maps_path(action.record.namespace), quote(name_of(action.record.job))
                self.cluster.delete(f"{path}/{name}.{LOGS}")
                self.cluster.delete(f"{path}/{name}")
        except ClusterError as error:
            self.complain(str(error))
            # where the namespace is gone there is no one to keep it for
            if not isinstance(action, Drop) and error.status != http.HTTPStatus.NOT_FOUND:
                self.memory.not_written(action, now())

    def _release(self, release: Release) -> None:
        """Says that the pod failed and deletes it without waiting for its machine, if no one hears of that."""
        path = f"/api/v1/namespaces/{quote(release.namespace)}/pods/{quote(release.pod)}"
        try:
            if not is_lost(self.cluster.json("GET", f"/api/v1/nodes/{quote(release.machine)}")):
                return
            # by its UID: the next pod may have the same name
            if not release.ended:
                self.cluster.json("PATCH", f"{path}/status", _failed(release.uid), "application/merge-patch+json")
            self.cluster.delete(path, {"gracePeriodSeconds": 0, "preconditions": {"uid": release.uid}})
            self.complain(f"{release.namespace}/{release.pod}: let go of, as nothing is heard of {release.machine}")
        except ClusterError as error:
            self.complain(str(error))

    def _put(self, item: dict[str, object]) -> None:
        self.cluster.put(_maps_path(meta(item, "namespace")), meta(item, "name"), item)

    def _read(self, asked: Read) -> None:
        lines = None
        try:
            most = self.given.rules.log_bytes
            lines = self.cluster.log(asked.namespace, asked.pod, asked.container, _LINES, most)
        except ClusterError as error:
            # of a pod that is gone meanwhile there is nothing to say
            if error.status not in (http.HTTPStatus.NOT_FOUND, http.HTTPStatus.BAD_REQUEST):
                self.complain(str(error))
        finally:
            self.events.put(LogRead(asked, lines))


def _failed(uid: str) -> dict[str, object]:
    """What is said of a pod whose machine says nothing. Its condition DisruptionTarget says already why it goes."""
    return {"metadata": {"uid": uid}, "status": {"phase": "Failed"}}


def _maps_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace)}/configmaps"


def complain(line: str) -> None:
    """A warning in the journal."""
    print(f"<4>{line}", file=sys.stderr, flush=True)


def stand_by(lease: Lease, until: float) -> bool:
    """Waits until the Lease is ours; False: not until then."""
    said = ""
    while time.time() < until:
        try:
            if lease.hold(time.time()):
                return True
            said = ""
        except ClusterError as error:
            if str(error) != said:
                said = str(error)
                complain(said)
        time.sleep(RENEW_S)
    return False


def record(recorder: Recorder, lease: Lease, until: float) -> None:
    """Records until then, or until the Lease is lost. Raises ClusterError when that cannot be known."""
    recorder.recall(time.time())
    recorder.watch()
    renewed = time.time()
    while time.time() < until:
        recorder.step(1.0)
        if time.time() - renewed < RENEW_S:
            continue
        try:
            if not lease.hold(time.time()):
                complain("another control plane records now")
                return
            renewed = time.time()
        except ClusterError as error:
            if time.time() - renewed > LASTING_S - RENEW_S:
                raise
            complain(str(error))


def main() -> int:
    """Until its token is old. systemd starts it again."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    given = settings.read(CONFIGURATION)
    folder, credentials = Path(os.environ["RUNTIME_DIRECTORY"]), Path(os.environ["CREDENTIALS_DIRECTORY"])
    cluster = Cluster(given.server, folder / "token", credentials / "ca.crt")
    lease, until = Lease(cluster, socket.gethostname()), time.time() + _LASTING_S
    if not stand_by(lease, until):
        return 0
    try:
        record(Recorder(cluster, given, complain), lease, until)
        lease.let_go()
    except SystemExit:
        lease.let_go()
        raise
    except ClusterError as error:
        complain(str(error))
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    # threads that wait for the API server have nothing to finish
    os._exit(code)
