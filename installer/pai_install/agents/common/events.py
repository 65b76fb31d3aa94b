"""Events of threads, taken by the one thread that acts on them."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from typing import TypeVar

_Event = TypeVar("_Event")


def drained(events: queue.Queue[_Event], wait_s: float, batch_s: float = 0) -> Iterator[_Event]:
    """Yields the next event, then all others that are there.

    wait_s: seconds to wait for the first. batch_s: seconds for more to arrive after it.
    """
    try:
        yield events.get(timeout=wait_s)
        # A new job has many pods at once. One pass for all of them is cheaper than one for each.
        time.sleep(batch_s)
        while True:
            yield events.get_nowait()
    except queue.Empty:
        return
