"""Times with limits, on a host whose processors other tests share."""

from __future__ import annotations

import re
import time
from pathlib import Path

# the limit of a measurement during all of which some task waited for a processor, in limits of an idle host
_MOST = 3


class Stopwatch:
    """Seconds since it was made, and whether they are within a limit.

    The limit grows with the share of this time in which some task of the host waited for a processor, up to three
    times. So a console that forgets a promise fails everywhere, and one that waits for its turn does not.
    """

    def __init__(self) -> None:
        self._begin, self._waited = time.monotonic(), waited_s(_pressure())

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begin

    def within(self, limit_s: float) -> bool:
        seconds = self.seconds
        return seconds < self.limit(limit_s, seconds)

    def limit(self, limit_s: float, seconds: float) -> float:
        """A limit as it has grown in these seconds."""
        return grown(limit_s, seconds, waited_s(_pressure()) - self._waited)


def grown(limit_s: float, seconds: float, waited: float) -> float:
    """A limit for a measurement of some seconds, in `waited` of which some task waited for a processor."""
    return limit_s * (1 + (_MOST - 1) * min(1.0, waited / max(seconds, 1e-3)))


def waited_s(pressure: str) -> float:
    """The time in which some task waited for a processor, from /proc/pressure/cpu."""
    found = re.search(r"^some .*total=(\d+)$", pressure, re.MULTILINE)
    return int(found[1]) / 1e6 if found else time.monotonic()


def _pressure() -> str:
    """Nothing where the kernel does not count it: then each limit is the largest."""
    try:
        return Path("/proc/pressure/cpu").read_text()
    except OSError:
        return ""
