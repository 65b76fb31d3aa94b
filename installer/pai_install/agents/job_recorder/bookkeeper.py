"""Keeps the ledger of this control plane: watches pods and jobs, and appends what follows from them."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import quote

from pai_install.agents.common.api import ApiError, Client
from pai_install.agents.common.events import drained
from pai_install.agents.common.ledger import read
from pai_install.agents.common.log import guarded
from pai_install.agents.common.values import child, meta, text
from pai_install.agents.job_recorder.admissions import CLUSTER_QUEUES, WORKLOADS
from pai_install.agents.job_recorder.book import Book
from pai_install.agents.job_recorder.ledger_files import LedgerFiles
from pai_install.agents.job_recorder.settings import Settings
from pai_install.agents.job_recorder.store import PODS
from pai_install.agents.job_recorder.watch import Event, Listed, Watcher

_SKU = "pai-install/sku"
# seconds until a node is read again, and between two attempts to write
_NODE_S, _RETRY_S = 600, 30
# files to read at the start: a pod of an earlier month is in them as long as it runs
_MONTHS = 2


@dataclass
class Bookkeeper:
    """The program beside the recorder. warn: takes a line for the log."""

    client: Client
    settings: Settings
    files: LedgerFiles
    warn: Callable[[str], None]
    events: queue.Queue[Event] = field(default_factory=queue.Queue)
    _nodes: dict[str, tuple[float, str]] = field(default_factory=dict)
    _retry_at: float = 0

    def start(self) -> None:
        """Runs in a thread that ends with the program."""
        threading.Thread(target=self.run, name="ledger", daemon=True).start()

    def run(self) -> None:
        """Runs without end. Begins again if the files of earlier runs cannot be read."""
        while True:
            with guarded(self.warn, "the ledger"):
                self.recall()
                self.watch()
                self._serve()
            time.sleep(_RETRY_S)

    def _serve(self) -> None:
        while True:
            with guarded(self.warn, "the ledger"):
                self.step(1.0)

    def recall(self) -> None:
        """Reads the files of earlier runs. Raises OSError."""
        self.book = Book(self.settings.rules.namespaces, self._sku_of, read(self.files.lines(_MONTHS)))

    def watch(self) -> None:
        """Starts the watches. Only Kueue has the queues."""
        for resource in (PODS, *self.settings.kinds):
            Watcher(self.client, resource, self.events.put, self.warn).start()
        for resource in (WORKLOADS, CLUSTER_QUEUES) if self.settings.reads_kueue else ():
            Watcher(self.client, resource, self.events.put, self.warn, selector="").start()

    def step(self, wait_s: float, now: Callable[[], float] = time.time) -> None:
        """Takes the events since the last step, then appends the lines that are due."""
        for event in drained(self.events, wait_s):
            self._take(event, now())
        self._write(now())

    def _take(self, event: Event, now: float) -> None:
        if not isinstance(event, Listed):
            with guarded(self.warn, f"{event.resource} {meta(event.item, 'namespace')}/{meta(event.item, 'name')}"):
                self.book.see(event.resource, event.item, now, gone=event.deleted)
            return
        for item in event.items:
            with guarded(self.warn, f"{event.resource} {meta(item, 'namespace')}/{meta(item, 'name')}"):
                self.book.see(event.resource, item, now)
        self.book.retain(event.resource, {meta(item, "uid") for item in event.items}, now)

    def _write(self, now: float) -> None:
        if now < self._retry_at:
            return
        if self.files.begins(now):
            self.book.again()
        lines = self.book.due(now)
        try:
            if lines:
                self.files.append(lines, now)
                self.book.forget(now)
            self._retry_at = 0
        except OSError as error:
            self.warn(f"cannot write the ledger: {error}")
            self.book.again()
            self._retry_at = now + _RETRY_S

    def _sku_of(self, node: str) -> str:
        """The SKU by the node's label, which only administrators write. "" while the API server does not say it."""
        at, sku = self._nodes.get(node, (0.0, ""))
        # A node's type changes with its hardware only. One request per pod would be thousands a day.
        if time.time() - at < _NODE_S:
            return sku
        try:
            found = self.client.json("GET", f"/api/v1/nodes/{quote(node, safe='')}")
        except ApiError as error:
            self.warn(str(error))
            return sku
        sku = text(child(found, "metadata", "labels").get(_SKU))
        self._nodes[node] = (time.time(), sku)
        return sku
