"""Many small questions at the same time."""

from __future__ import annotations

import concurrent.futures
from typing import Any


def at_once(work: Any, items: Any) -> list[Any]:
    """`work` for every item, all at the same time; results in their order."""
    wanted = list(items)
    if not wanted:
        return []
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(32, len(wanted))) as pool:
        return list(pool.map(work, wanted))
