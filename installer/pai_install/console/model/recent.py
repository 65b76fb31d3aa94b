"""Values that are expensive to compute or to ask for: readers share the latest one."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
# a value that no one asks for is not renewed
_ASKED_S = 60.0
# readers wait for a new value when the thread of the model is this many periods late
_LATE = 6


@dataclass
class Recent(Generic[T]):
    """A value that is renewed after some seconds. renewed: a thread calls `refresh`, so readers need not wait."""

    make: Callable[[], T]
    seconds: float
    clock: Callable[[], float] = time.monotonic
    renewed: bool = False
    _value: tuple[float, T] | None = None
    _requested_at: float | None = None
    _lock: Lock = field(default_factory=Lock, repr=False)

    def get(self) -> T:
        """The latest value. Raises what `make` raises."""
        now = self.clock()
        self._requested_at = now
        found = self._value
        if found is not None and now - found[0] < self.seconds * (_LATE if self.renewed else 1):
            return found[1]
        with self._lock:
            if self._value is None or self._value is found:
                self._value = (self.clock(), self.make())
            return self._value[1]

    def refresh(self) -> None:
        """Computes the value again if it is old, and if someone asked for it lately."""
        now = self.clock()
        if self._requested_at is None or now - self._requested_at > _ASKED_S:
            return
        if self._value is None or now - self._value[0] >= self.seconds:
            self._value = (now, self.make())

    def forget(self) -> None:
        """The next reader gets a new value."""
        self._value = None


@dataclass
class RecentByKey(Generic[K, T]):
    """Values by key that count for some seconds. most: beyond it, the oldest are forgotten."""

    seconds: float
    most: int
    clock: Callable[[], float] = time.monotonic
    _kept: OrderedDict[K, tuple[float, T]] = field(default_factory=OrderedDict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def get(self, key: K, make: Callable[[], T], usable: Callable[[T], bool] = lambda _value: True) -> T:
        """The value of a key: a recent one that is usable, or a new one. Raises what `make` raises."""
        now = self.clock()
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and now - kept[0] < self.seconds and usable(kept[1]):
            return kept[1]
        found = make()
        with self._lock:
            self._kept[key] = (now, found)
            self._kept.move_to_end(key)
            while len(self._kept) > self.most:
                self._kept.popitem(last=False)
        return found
