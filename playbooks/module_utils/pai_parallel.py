"""Many small questions at the same time."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Runs `work` for all items in parallel and returns the results in order."""
    wanted = list(items)
    if not wanted:
        return []
    # Threads suffice, since these questions wait for other programs or machines.
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(32, len(wanted))) as pool:
        return list(pool.map(work, wanted))
