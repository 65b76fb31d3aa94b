"""Objects of one kind, reduced, by UID."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pai_install.console.model.reduced import pack, reduced, unpack
from pai_install.kube.objects import JsonObject, child, text
from pai_install.scheduling.usage.pods import has_ended

_LOG = logging.getLogger("pai_install.console")
# UID of an object, and the object, None for a deleted one
Changed = Callable[[str, JsonObject | None], None]


def uid_of(item: JsonObject) -> str:
    """The UID of an object, else its name: a node has both."""
    metadata = child(item, "metadata")
    return text(metadata.get("uid")) or f"{text(metadata.get('namespace'))}/{text(metadata.get('name'))}"


@dataclass
class Shelf:
    """Takes the objects of a watch, and tells each change. kind: as kubectl names it."""

    kind: str
    changed: Changed
    _items: dict[str, str] = field(default_factory=dict, repr=False)
    _ended: set[str] = field(default_factory=set, repr=False)
    _seen: set[str] | None = field(default=None, repr=False)

    def begin(self) -> None:
        """All existing objects follow."""
        self._seen = set()

    def put(self, item: JsonObject) -> None:
        """A new or changed object. One that cannot be read is left out."""
        try:
            small = reduced(self.kind, item)
            packed = pack(small)
            uid, ended = uid_of(small), has_ended(small)
        except (ValueError, TypeError, AttributeError, RecursionError):
            _LOG.warning("an object of %s cannot be read", self.kind)
            return
        if not packed:
            _LOG.warning("%s %s is too large for the model", self.kind, uid)
            return
        if self._seen is not None:
            self._seen.add(uid)
        if self._items.get(uid) != packed:
            self._items[uid] = packed
            (self._ended.add if ended else self._ended.discard)(uid)
            self._report(uid, small)

    def drop(self, item: JsonObject) -> None:
        """A deleted object."""
        self._remove(uid_of(item))

    def synced(self) -> None:
        """Removes objects that were not put since `begin`."""
        if self._seen is not None:
            for uid in self._items.keys() - self._seen:
                self._remove(uid)
        self._seen = None

    def get(self, uid: str) -> JsonObject | None:
        """The object with a UID."""
        packed = self._items.get(uid)
        return unpack(packed) if packed else None

    def objects(self) -> Iterator[JsonObject]:
        """All objects."""
        for packed in list(self._items.values()):
            yield unpack(packed)

    def unfinished(self) -> Iterator[JsonObject]:
        """Objects that have not ended. Most pods of a cluster have, and reading them takes long."""
        for uid, packed in list(self._items.items()):
            if uid not in self._ended:
                yield unpack(packed)

    def __len__(self) -> int:
        return len(self._items)

    def _remove(self, uid: str) -> None:
        self._ended.discard(uid)
        if self._items.pop(uid, None) is not None:
            self._report(uid, None)

    def _report(self, uid: str, item: JsonObject | None) -> None:
        try:
            self.changed(uid, item)
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            _LOG.exception("a change of %s cannot be read", self.kind)
