"""Objects that a watch keeps up to date."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from pai_install.cluster.client import ClusterClient, Select
from pai_install.console.errors import not_ready
from pai_install.console.model.watching import KindWatch
from pai_install.kube.objects import JsonObject, child, text

# after the loss of a watch: one that was deleted meanwhile must not stay
_KNOWN_S = 2.0
_PAUSE_S = 1.0


class WatchedObjects:
    """UID -> object, of one kind. The sink of its watch. After a loss, the earlier objects count for two seconds."""

    def __init__(
        self, own: Callable[[], ClusterClient], select: Select, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._watch = KindWatch(select, own, self, clock=clock, optional=False, longest_pause_s=_PAUSE_S)
        self._objects: dict[str, JsonObject] = {}
        # of an unfinished list
        self._listed: dict[str, JsonObject] | None = None
        self._version = 0

    def start(self) -> None:
        """Watches in a thread until the process ends."""
        self._watch.start()

    def stop(self) -> None:
        """Ends with the next event."""
        self._watch.ended.set()

    @property
    def is_known(self) -> bool:
        """Whether the objects are those of now."""
        broken = self._watch.broken_since
        return self._watch.ready and (broken is None or self._clock() - broken <= _KNOWN_S)

    @property
    def objects(self) -> Mapping[str, JsonObject]:
        """The objects of now. Do not change it. Raises RestError while the cluster does not answer."""
        self._require_known()
        return self._objects

    @property
    def version(self) -> int:
        """Changes with each event. Raises RestError while the cluster does not answer."""
        self._require_known()
        return self._version

    def begin(self) -> None:
        """All existing objects follow."""
        self._listed = {}

    def put(self, item: JsonObject) -> None:
        """A new or changed object."""
        if self._listed is not None:
            self._listed[_uid(item)] = item
            return
        self._set({**self._objects, _uid(item): item})

    def drop(self, item: JsonObject) -> None:
        """A deleted object."""
        self._set({key: value for key, value in self._objects.items() if key != _uid(item)})

    def synced(self) -> None:
        """The list is whole: others are gone."""
        self._set(self._listed or {})
        self._listed = None

    def _set(self, objects: dict[str, JsonObject]) -> None:
        self._objects = objects
        self._version += 1

    def _require_known(self) -> None:
        if not self.is_known:
            raise not_ready("the console reads the users of the cluster")


def _uid(item: JsonObject) -> str:
    return text(child(item, "metadata").get("uid"))
