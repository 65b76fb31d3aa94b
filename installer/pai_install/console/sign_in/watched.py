"""Objects that a thread keeps up to date by a watch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import closing
from threading import Event, Thread

from pai_install.cluster.client import ClusterClient, Select
from pai_install.errors import PaiError
from pai_install.kube.objects import JsonObject, child, text

_LOG = logging.getLogger("pai_install.console")
_PAUSE_S = 1.0


class WatchedObjects:
    """UID -> object, of one kind. Empty while the cluster does not answer.

    A lost watch begins again without the earlier objects, so that no object stays that was deleted meanwhile.
    """

    def __init__(self, own: Callable[[], ClusterClient], select: Select) -> None:
        self._own, self._select = own, select
        self._objects: dict[str, JsonObject] = {}
        self._ended = Event()
        # changes with each event
        self.version = 0

    def start(self) -> None:
        """Watches in a thread until the process ends."""
        Thread(target=self._run, name=f"watch {self._select.kinds[0]}", daemon=True).start()

    def stop(self) -> None:
        """Ends with the next event."""
        self._ended.set()

    @property
    def objects(self) -> Mapping[str, JsonObject]:
        """The objects of now. Do not change it."""
        return self._objects

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self.follow()
            except (PaiError, OSError) as error:
                _LOG.warning("cannot watch %s: %s", self._select.kinds[0], error)
            except Exception:
                # a thread that ended would keep users that were removed
                _LOG.exception("the watch of %s failed", self._select.kinds[0])
            self._objects = {}
            self.version += 1
            self._ended.wait(_PAUSE_S)

    def follow(self) -> None:
        """Follows one watch to its end."""
        with closing(self._own().watch(self._select)) as events:  # type: ignore[type-var]
            for event in events:
                uid = text(child(event.object, "metadata").get("uid"))
                if event.type == "DELETED":
                    self._objects = {key: value for key, value in self._objects.items() if key != uid}
                elif event.type in ("ADDED", "MODIFIED"):
                    self._objects = {**self._objects, uid: event.object}
                self.version += 1
                if self._ended.is_set():
                    return
