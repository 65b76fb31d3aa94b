"""Records of deleted jobs, as a sink of a watch."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from pai_install.jobs.history import kept_jobs
from pai_install.jobs.state import JobState
from pai_install.kube.objects import JsonObject, child, text

_LOG = logging.getLogger("pai_install.console")


@dataclass
class RecordSink:
    """Reads each record at once, and keeps its state alone."""

    changed: Callable[[str, JobState | None], None]
    _known: set[str] = field(default_factory=set, repr=False)
    _seen: set[str] | None = field(default=None, repr=False)

    def begin(self) -> None:
        """All existing records follow."""
        self._seen = set()

    def put(self, item: JsonObject) -> None:
        """A new or changed record. One that cannot be read is left out."""
        name = _name(item)
        try:
            job = next((one.job for one in kept_jobs([item])), None)
        except (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError):
            _LOG.warning("the record %s cannot be read", name)
            job = None
        if self._seen is not None:
            self._seen.add(name)
        if job is not None or name in self._known:
            self._known.add(name)
            self.changed(name, job)

    def drop(self, item: JsonObject) -> None:
        """A deleted record."""
        self._known.discard(_name(item))
        self.changed(_name(item), None)

    def synced(self) -> None:
        """Removes records that were not put since `begin`."""
        for name in self._known - (self._seen if self._seen is not None else self._known):
            self._known.discard(name)
            self.changed(name, None)
        self._seen = None


def _name(item: JsonObject) -> str:
    metadata = child(item, "metadata")
    return f"{text(metadata.get('namespace'))}/{text(metadata.get('name'))}"
