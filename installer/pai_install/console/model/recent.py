"""Values of the model that are expensive to compute: readers share the latest one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")
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
    _asked: float | None = None
    _lock: Lock = field(default_factory=Lock, repr=False)

    def get(self) -> T:
        """The latest value. Raises what `make` raises."""
        now = self.clock()
        self._asked = now
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
        if self._asked is None or now - self._asked > _ASKED_S:
            return
        if self._value is None or now - self._value[0] >= self.seconds:
            self._value = (now, self.make())

    def forget(self) -> None:
        """The next reader gets a new value."""
        self._value = None
