"""Rates of requests: so many of a caller in a time, in memory of one replica."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import Lock

from pai_install.console.errors import RestError

_MOST = 20_000


@dataclass
class RateGate:
    """A bucket of tokens for each caller. rates: name -> requests, seconds."""

    rates: dict[str, tuple[int, float]]
    clock: Callable[[], float] = time.monotonic
    _buckets: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def take(self, rate: str, who: str) -> None:
        """Counts a request. Raises RestError for one too many."""
        most, seconds = self.rates[rate]
        now = self.clock()
        with self._lock:
            if len(self._buckets) >= _MOST:
                # Memory has a limit. Clearing forgives some requests, and refuses no one by mistake.
                self._buckets.clear()
            left, at = self._buckets.get((rate, who), (float(most), now))
            left = min(float(most), left + (now - at) * most / seconds)
            if left < 1:
                self._buckets[rate, who] = (left, now)
                wait = int((1 - left) * seconds / most) + 1
                raise RestError(
                    HTTPStatus.TOO_MANY_REQUESTS,
                    "TooManyRequestsError",
                    f"more than {most} requests in {seconds:g} s",
                    headers={"Retry-After": str(wait)},
                )
            self._buckets[rate, who] = (left - 1, now)
