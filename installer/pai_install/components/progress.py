"""Progress of this room: one short line at a time, to the caller."""

from __future__ import annotations

import time
from collections.abc import Callable

Progress = Callable[[str], None]


def silent(line: str) -> None:
    """Reports nothing."""
    del line


class Throttle:
    """Passes on at most one line per interval (seconds), so that a busy tool does not flood the terminal."""

    def __init__(self, progress: Progress, *, interval_s: float = 10.0) -> None:
        self._progress = progress
        self._interval_s = interval_s
        self._due = time.monotonic() + interval_s

    def __call__(self, line: str) -> None:
        """Passes the line on if the interval is over, forgets it otherwise."""
        if time.monotonic() >= self._due:
            self._progress(line)
            self._due = time.monotonic() + self._interval_s
