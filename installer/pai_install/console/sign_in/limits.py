"""Limits of wrong passwords, by name and by address, and of password hashes at a time."""

from __future__ import annotations

import ipaddress
import math
import os
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from threading import BoundedSemaphore, Lock

from pai_install.console.errors import RestError

_FREE_FAILURES = 5
_LONGEST_S = 60.0
# wrong passwords of one address in one minute
_PER_ADDRESS = 30
_WINDOW_S = 60.0
# a name without failures for this time begins again
_FORGOTTEN_S = 900.0
_MOST_KEPT = 20_000
_MOST_HASHES, _WAITING, _WAIT_S = 4, 20, 5.0


class SignInLimits:
    """Counts wrong passwords. Right ones, and empty ones, do not count."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._names: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._addresses: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = Lock()

    def check(self, name: str, address: str) -> None:
        """Raises RestError with Retry-After for a name or an address that has to wait."""
        now = self._clock()
        with self._lock:
            wait = max(self._of_name(name, now), self._of_address(_network(address), now))
        if wait > 0:
            raise too_many("too many wrong passwords", wait)

    def failed(self, name: str, address: str) -> None:
        """Counts a wrong password."""
        now = self._clock()
        with self._lock:
            count, last = self._names.pop(name, (0, now))
            self._names[name] = (1 if now - last > _FORGOTTEN_S else count + 1, now)
            times = self._addresses.pop(_network(address), deque(maxlen=_PER_ADDRESS))
            times.append(now)
            self._addresses[_network(address)] = times
            for kept in (self._names, self._addresses):
                while len(kept) > _MOST_KEPT:
                    kept.popitem(last=False)

    def succeeded(self, name: str) -> None:
        """Forgets the wrong passwords of a name."""
        with self._lock:
            self._names.pop(name, None)

    def _of_name(self, name: str, now: float) -> float:
        count, last = self._names.get(name, (0, 0.0))
        if count < _FREE_FAILURES:
            return 0.0
        return last + min(_LONGEST_S, 2.0 ** (count - _FREE_FAILURES)) - now

    def _of_address(self, address: str, now: float) -> float:
        times = self._addresses.get(address, ())
        recent = [time for time in times if now - time < _WINDOW_S]
        return recent[0] + _WINDOW_S - now if len(recent) >= _PER_ADDRESS else 0.0


class HashSlots:
    """Hashes on half of the processors, two to four at a time: each takes 19 MiB and a processor, which other requests
    need. One at a time was too slow for twenty sign-ins per second. A few more requests wait for a moment.
    """

    def __init__(self, processors: int | None = None) -> None:
        found = processors or os.cpu_count() or 1
        most = max(min(2, found), min(_MOST_HASHES, found // 2))
        self._slots, self._line = BoundedSemaphore(most), BoundedSemaphore(most + _WAITING)

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Raises RestError with Retry-After if too many are in use."""
        if not self._line.acquire(blocking=False):
            raise too_many("too many people sign in at this moment", 1)
        try:
            if not self._slots.acquire(timeout=_WAIT_S):
                raise too_many("too many people sign in at this moment", 1)
            try:
                yield
            finally:
                self._slots.release()
        finally:
            self._line.release()


def too_many(message: str, wait_s: float) -> RestError:
    """The answer to one who has to wait."""
    seconds = max(1, math.ceil(wait_s))
    return RestError(
        HTTPStatus.TOO_MANY_REQUESTS,
        "TooManyRequestsError",
        f"{message}: try again in {seconds} s",
        headers={"Retry-After": str(seconds)},
    )


def _network(address: str) -> str:
    """An IPv6 network for one of its addresses: whoever has one has them all."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        mapped = found.ipv4_mapped
        return str(mapped) if mapped else str(ipaddress.ip_network((found, 64), strict=False))
    return address
