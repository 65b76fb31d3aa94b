"""Waits for what happens, instead of for some time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def until(
    holds: Callable[[], Found | None],
    seconds: float = 90,
    what: str = "it did not come true in time",
    pause_s: float = 0.05,
) -> Found:
    """What is true at last. Raises AssertionError with `what` otherwise.

    seconds: far more than it takes. A test with a promise has a Stopwatch beside it. pause_s: between two looks.
    """
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, what
        time.sleep(pause_s)
    return found
