"""Connections of visits that go on: one look per visit and half second decides for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from anyio import to_thread

from pai_install.console.web_pages.owned import Visit

LOOK_S = 0.5


@dataclass
class _Door:
    """closed: the visit is over."""

    closed: asyncio.Event = field(default_factory=asyncio.Event)
    inside: int = 0


@dataclass
class Doors:
    """The open connections of all visits."""

    _doors: dict[Visit, _Door] = field(default_factory=dict)
    _looks: set[asyncio.Task[None]] = field(default_factory=set)

    @contextmanager
    def entered(self, visit: Visit, still: Callable[[], bool]) -> Iterator[asyncio.Event]:
        """An event: the connection has to end. still: whether the visit may go on. It runs in a thread."""
        door = self._doors.get(visit)
        if door is None:
            door = self._doors[visit] = _Door()
            task = asyncio.create_task(self._look(visit, door, still))
            self._looks.add(task)
            task.add_done_callback(self._looks.discard)
        door.inside += 1
        try:
            yield door.closed
        finally:
            door.inside -= 1

    async def _look(self, visit: Visit, door: _Door, still: Callable[[], bool]) -> None:
        """Looks until no one is inside, or the visit is over."""
        try:
            while True:
                await asyncio.sleep(LOOK_S)
                if not door.inside or not await to_thread.run_sync(still):
                    return
        finally:
            # whoever comes now gets another door
            self._doors.pop(visit, None)
            door.closed.set()
