"""Entry point: holds the Lease, watches jobs and pods, and runs the actions that follow from them."""

from __future__ import annotations

import http
import os
import queue
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from pai_install.agents.common.api import MERGE, ApiError, Client, object_path, with_token
from pai_install.agents.common.events import drained
from pai_install.agents.common.lease import Lease, serve, while_held
from pai_install.agents.common.log import Log, guarded
from pai_install.agents.common.records import LOGS, RECORD, STATE, logs_map, name_of, read_record, state_map
from pai_install.agents.common.values import Json, child, meta, rows, text
from pai_install.agents.job_recorder import settings
from pai_install.agents.job_recorder.actions import Actor
from pai_install.agents.job_recorder.admissions import WORKLOADS
from pai_install.agents.job_recorder.bookkeeper import Bookkeeper
from pai_install.agents.job_recorder.idle import Idle
from pai_install.agents.job_recorder.ledger_files import LedgerFiles
from pai_install.agents.job_recorder.lost_pods import LostPods, Release, is_lost
from pai_install.agents.job_recorder.orders import Action, End, Read, WriteLogs, WriteState
from pai_install.agents.job_recorder.settings import Settings
from pai_install.agents.job_recorder.store import AT_ONCE, PODS, Store
from pai_install.agents.job_recorder.watch import Event, Listed, Watcher

CONFIGURATION = Path("/etc/pai-install/job-recorder.json")
LEASE = "pai-job-recorder"
_LOG_LINES = 400
_BUS = "bus.volcano.sh/v1alpha1"


@dataclass(frozen=True)
class LogRead:
    """The result of a Read. lines: None where the log could not be read."""

    action: Read
    lines: str | None


@dataclass
class Recorder:
    """The program while it holds the Lease. warn: takes a line for the log."""

    client: Client
    settings: Settings
    warn: Callable[[str], None]
    events: queue.Queue[Event | LogRead] = field(default_factory=queue.Queue)

    def __post_init__(self) -> None:
        rules = self.settings.rules
        self.store = Store(rules)
        self.lost_pods = LostPods(rules.namespaces)
        self.idle = Idle(rules.namespaces, self.settings.limits)
        self._actor = Actor(self.client, self.warn)
        self._pool = ThreadPoolExecutor(AT_ONCE)

    def recall(self, now: float) -> None:
        """Reads the records of earlier runs. Raises ApiError."""
        for namespace in sorted(self.settings.rules.namespaces):
            logs = {meta(item, "name"): child(item, "data") for item in self._maps(namespace, LOGS)}
            for item in self._maps(namespace, STATE):
                record = read_record(item)
                if record is None:
                    self.warn(f"cannot read record {namespace}/{meta(item, 'name')}")
                    continue
                with self._guarded(item):
                    lines = logs.get(f"{name_of(record.job)}.{LOGS}", {})
                    self.store.recall(record, {pod: text(tail) for pod, tail in lines.items()}, now)

    def _maps(self, namespace: str, kind: str) -> list[Json]:
        pages = self.client.pages(_maps_path(namespace), {"labelSelector": f"{RECORD}={kind}"})
        return [item for page in pages for item in rows(page.get("items"))]

    def watch(self) -> None:
        """Starts the watches."""
        for resource in (PODS, *self.settings.kinds):
            Watcher(self.client, resource, self.events.put, self.warn).start()
        if self.settings.reads_kueue:
            Watcher(self.client, WORKLOADS, self.events.put, self.warn, selector="").start()

    def step(self, wait_s: float, now: Callable[[], float] = time.time) -> None:
        """Takes the events since the last step, then runs the actions that are due."""
        for event in drained(self.events, wait_s):
            self._take(event, now())
        with guarded(self.warn, "records"):
            for action in self.store.due(now()):
                self._run(action, now)
        with guarded(self.warn, "pods of lost nodes"):
            for release in self.lost_pods.due(now()):
                self._release(release)
        with guarded(self.warn, "limits of use"):
            for limit_action in self.idle.due(now()):
                self._actor.run(limit_action)

    def _take(self, event: Event | LogRead, now: float) -> None:
        if isinstance(event, LogRead):
            self.store.log_read(event.action, event.lines, now)
        elif event.resource == WORKLOADS:
            for item in event.items if isinstance(event, Listed) else (event.item,):
                with self._guarded(item):
                    self.store.see_workload(item)
        elif isinstance(event, Listed):
            uids = {meta(item, "uid") for item in event.items}
            for item in event.items:
                self._see(event.resource, item, now)
            self.store.retain(event.resource, uids, now)
            self.idle.retain(event.resource, uids)
            if event.resource == PODS:
                self.lost_pods.retain(uids)
        elif event.deleted:
            self._forget(event.resource, event.item, now)
        else:
            self._see(event.resource, event.item, now)

    def _see(self, resource: str, item: Json, now: float) -> None:
        """Takes the state of one object. An object that cannot be processed affects no other object."""
        with self._guarded(item):
            if resource == PODS:
                self.lost_pods.see(item)
            self.idle.see(resource, item)
            (self.store.see_pod if resource == PODS else self.store.see_job)(item, now)

    def _forget(self, resource: str, item: Json, now: float) -> None:
        with self._guarded(item):
            self.lost_pods.gone(item)
            self.idle.gone(item)
            (self.store.pod_gone if resource == PODS else self.store.job_gone)(item, now)

    def _guarded(self, item: Json) -> AbstractContextManager[None]:
        return guarded(self.warn, f"{item.get('kind')} {meta(item, 'namespace')}/{meta(item, 'name')}")

    def _run(self, action: Action, now: Callable[[], float]) -> None:
        if isinstance(action, Read):
            # A silent kubelet lets its log wait for the timeout. Watches must not wait with it.
            self._pool.submit(self._read, action)
            return
        try:
            if isinstance(action, WriteState):
                self._put(state_map(action.record))
            elif isinstance(action, WriteLogs):
                self._put(logs_map(action.job, action.logs))
            elif isinstance(action, End):
                self._end(action.job)
            else:
                name = name_of(action.record.job)
                for each in (f"{name}.{LOGS}", name):
                    self.client.delete(object_path("v1", "configmaps", action.record.namespace, each))
        except ApiError as error:
            self.warn(str(error))
            # a deleted namespace has no records
            if isinstance(action, (WriteState, WriteLogs)) and error.status != http.HTTPStatus.NOT_FOUND:
                self.store.not_written(action, now())

    def _release(self, release: Release) -> None:
        """Sets the pod to Failed and deletes it without waiting for its node, if the node is lost."""
        path = object_path("v1", "pods", release.namespace, release.pod)
        try:
            # The node is read at the last moment: it may have come back since.
            if not is_lost(self.client.json("GET", f"/api/v1/nodes/{quote(release.node, safe='')}")):
                return
            # by its UID: the next pod may have the same name
            if not release.ended:
                body = {"metadata": {"uid": release.uid}, "status": {"phase": "Failed"}}
                self.client.json("PATCH", f"{path}/status", body, MERGE)
            self.client.delete(path, {"gracePeriodSeconds": 0, "preconditions": {"uid": release.uid}})
            self.warn(f"{release.namespace}/{release.pod}: deleted, because node {release.node} is lost")
        except ApiError as error:
            self.warn(str(error))

    def _end(self, job: Json) -> None:
        """Ends a job of Volcano with its pods. Its object stays."""
        target = {"apiVersion": text(job.get("apiVersion")), "kind": text(job.get("kind"))}
        # Volcano's controller accepts commands by objects only. A deleted job would lose its status.
        target |= {"name": meta(job, "name"), "uid": meta(job, "uid")}
        metadata = {"generateName": f"{meta(job, 'name')[:40].rstrip('-.')}-", "namespace": meta(job, "namespace")}
        body = {"apiVersion": _BUS, "kind": "Command", "metadata": metadata, "action": "TerminateJob", "target": target}
        self.client.json("POST", object_path(_BUS, "commands", meta(job, "namespace")), body)
        self.warn(f"{meta(job, 'namespace')}/{meta(job, 'name')}: ended, because it failed more often than it may")

    def _put(self, item: Json) -> None:
        self.client.put(_maps_path(meta(item, "namespace")), meta(item, "name"), item)

    def _read(self, action: Read) -> None:
        lines, size = None, self.settings.rules.log_bytes
        try:
            lines = self.client.log(action.namespace, action.pod, action.container, _LOG_LINES, size)
        except ApiError as error:
            # the pod was deleted meanwhile
            if error.status not in (http.HTTPStatus.NOT_FOUND, http.HTTPStatus.BAD_REQUEST):
                self.warn(str(error))
        finally:
            self.events.put(LogRead(action, lines))


def _maps_path(namespace: str) -> str:
    return object_path("v1", "configmaps", namespace)


def record(recorder: Recorder, lease: Lease, until: float) -> None:
    """Records until then, or until the Lease is lost. Raises ApiError when it cannot renew the Lease."""
    # Before the watches: pods of a known job would otherwise begin a second record.
    recorder.recall(time.time())
    recorder.watch()
    while_held(lease, until, lambda: recorder.step(1.0), recorder.warn)


def main() -> int:
    """Runs until its token is old. systemd starts it again."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    given, warn = settings.read(CONFIGURATION), Log().warn
    folder, credentials = Path(os.environ["RUNTIME_DIRECTORY"]), Path(os.environ["CREDENTIALS_DIRECTORY"])
    client = Client(with_token(given.server, folder / "token", credentials / "ca.crt"))
    files = LedgerFiles(Path(os.environ["STATE_DIRECTORY"]), given.ledger_months)
    Bookkeeper(client, given, files, warn).start()
    return serve(client, LEASE, lambda lease, until: record(Recorder(client, given, warn), lease, until), warn)


if __name__ == "__main__":
    code = main()
    # threads that wait for the API server have nothing to finish
    os._exit(code)
