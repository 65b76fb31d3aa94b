"""Watches of the console's own account: one thread for each kind. A lost watch lists again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Protocol

from pai_install.cluster.client import ApiError, ClusterClient, Select, WatchEvent
from pai_install.errors import PaiError
from pai_install.kube.objects import JsonObject

_LOG = logging.getLogger("pai_install.console")
# no reason to serve nothing
_ABSENT = ("NoSuchKind", "Forbidden")
_PAUSE_S, _MISSING_KIND_S = 1.0, 60.0


class Sink(Protocol):
    """Takes the objects of one kind. Methods must not raise for any object."""

    def begin(self) -> None:
        """All existing objects follow."""
        ...

    def put(self, item: JsonObject) -> None:
        """A new or changed object."""
        ...

    def drop(self, item: JsonObject) -> None:
        """A deleted object."""
        ...

    def synced(self) -> None:
        """All existing objects were put since `begin`: others are gone."""
        ...


@dataclass
class KindWatch:
    """Watches one kind. broken_since: since when the cluster does not answer, None while it does.

    optional: the cluster may lack the kind, or refuse it, and has no objects then. longest_pause_s: between tries.
    """

    select: Select
    own: Callable[[], ClusterClient]
    sink: Sink
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    optional: bool = True
    longest_pause_s: float = 30.0
    ended: Event = field(default_factory=Event)
    broken_since: float | None = None
    ready: bool = False

    def start(self) -> None:
        """Watches in a thread that ends with the process."""
        self.broken_since = self.clock()
        Thread(target=self.run, name=f"watch {self.select.kinds[0]}", daemon=True).start()

    def run(self) -> None:
        """Watches until `ended`."""
        pause = _PAUSE_S
        while not self.ended.is_set():
            try:
                self.once()
                pause = _PAUSE_S
            except (PaiError, OSError) as error:
                if self.optional and isinstance(error, ApiError) and error.reason in _ABSENT:
                    if error.reason == "Forbidden":
                        _LOG.warning("cannot watch %s: %s", self.select, error.details)
                    self._finish()  # the cluster does not have this kind or namespace, or not yet
                    self.sleep(_MISSING_KIND_S)
                    continue
                _LOG.warning("cannot watch %s: %s", self.select.kinds[0], error)
                self._broken()
            except Exception:
                _LOG.exception("the watch of %s failed", self.select.kinds[0])
                self._broken()
            self.sleep(pause)
            pause = min(pause * 2, self.longest_pause_s)

    def once(self) -> None:
        """Lists, then follows changes to the end of the watch."""
        self.sink.begin()
        with closing(self.own().watch(self.select)) as events:  # type: ignore[type-var]
            for event in events:
                self._take(event)
                if self.ended.is_set():
                    return

    def _take(self, event: WatchEvent) -> None:
        if event.type == "BOOKMARK":
            self._finish()
        elif event.type == "DELETED":
            self.sink.drop(event.object)
        else:
            self.sink.put(event.object)

    def _finish(self) -> None:
        self.sink.synced()
        self.ready, self.broken_since = True, None

    def _broken(self) -> None:
        if self.broken_since is None:
            self.broken_since = self.clock()
