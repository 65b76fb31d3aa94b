"""Publishes the addresses of pods as ConfigMaps that nodes may read: nodes may not read the pods of each other."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass, field
from typing import Callable
from urllib.parse import quote

from pai_install.agents.common.api import ApiError, Client, object_path
from pai_install.agents.common.events import drained
from pai_install.agents.common.log import guarded
from pai_install.agents.common.values import Json, child, meta, rows, text
from pai_install.agents.common.watch import keep_following
from pai_install.agents.group_network.addresses import WEB, Directory

NAMESPACE = "pai-network"
MAPS = object_path("v1", "configmaps", NAMESPACE)
FIELD = "addresses"
# changes within this time are published together
BATCH_S = 0.2
PODS, NODES = "pods", "nodes"


@dataclass
class Publisher:
    """The program while it holds the Lease. warn: takes a line for the log."""

    client: Client
    directory: Directory
    warn: Callable[[str], None]
    events: queue.Queue[Callable[[], None]] = field(default_factory=queue.Queue)
    listed: set[str] = field(default_factory=set)
    known: dict[str, str] = field(default_factory=dict)

    def recall(self) -> None:
        """Reads what was published before. Raises ApiError."""
        for page in self.client.pages(MAPS, {}):
            for item in rows(page.get("items")):
                name = meta(item, "name")
                # Every namespace has the authority of the cluster as a ConfigMap. A deletion without a name would be
                # one of all ConfigMaps.
                if name and FIELD in child(item, "data"):
                    self.known[name] = text(child(item, "data").get(FIELD))

    def watch(self) -> None:
        """Starts the watches."""
        for kind in (PODS, NODES):
            threading.Thread(target=self._follow, args=(kind,), name=kind, daemon=True).start()

    def _follow(self, kind: str) -> None:
        keep_following(
            self.client,
            f"/api/v1/{kind}",
            lambda items: self.events.put(lambda: self.take_list(kind, items)),
            lambda deleted, item: self.events.put(lambda: self.take(kind, item, deleted=deleted)),
            self.warn,
        )

    def take_list(self, kind: str, items: tuple[Json, ...]) -> None:
        """Takes all objects of a kind. Those of before that are not among them are gone."""
        (self.directory.pods if kind == PODS else self.directory.machines).clear()
        for item in items:
            self.take(kind, item, deleted=False)
        self.listed.add(kind)

    def take(self, kind: str, item: Json, *, deleted: bool) -> None:
        """Takes one object. An object that cannot be processed affects no other object."""
        with guarded(self.warn, f"{kind} {meta(item, 'namespace')}/{meta(item, 'name')}"):
            if deleted and kind == PODS:
                self.directory.pods.pop(meta(item, "uid"), None)
            elif deleted:
                self.directory.machines.pop(meta(item, "name"), None)
            else:
                (self.directory.see_pod if kind == PODS else self.directory.see_machine)(item)

    def step(self, wait_s: float = 1.0) -> None:
        """Takes the events since the last step, and publishes what they change."""
        for take in drained(self.events, wait_s, BATCH_S):
            take()
        # half of it would take pods for strangers
        if self.listed >= {PODS, NODES}:
            self.publish()

    def publish(self) -> None:
        """Writes the sets that differ from the published ones, and deletes those of former groups.

        Without the ports of web pages it writes no others: pods of the group would reach a new page.
        """
        wanted = self.directory.published()
        for name, words in wanted.items():
            if self.known.get(name) != words:
                self._try(name, lambda name=name, words=words: self._put(name, words))  # type: ignore[misc]
                if name == WEB and self.known.get(name) != words:
                    return
        for name in sorted(self.known.keys() - wanted.keys()):
            self._try(name, lambda name=name: self._remove(name))  # type: ignore[misc]

    def _try(self, name: str, write: Callable[[], None]) -> None:
        try:
            write()
        except ApiError as error:
            self.warn(f"{name}: {error}")

    def _put(self, name: str, words: str) -> None:
        metadata = {"name": name, "namespace": NAMESPACE}
        self.client.put(
            MAPS, name, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {FIELD: words}}
        )
        self.known[name] = words

    def _remove(self, name: str) -> None:
        self.client.delete(f"{MAPS}/{quote(name, safe='')}")
        del self.known[name]
