"""Splits very large sites into several runs of Ansible, because it keeps data for each machine.

Machines that serve others are in the first run, so that later runs can use them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from pai_install.engine.base import Engine, Event, EventKind, RunRequest

# Ansible keeps the variables and facts of all machines of a run in each of its processes
LARGEST = 500
_PLAIN_GROUPS = frozenset({"workers", "nvidia"})


class ShardedEngine:
    """An engine that splits requests for more than `largest` machines."""

    def __init__(self, engine: Engine, largest: int = LARGEST) -> None:
        self._engine, self._largest = engine, largest

    def run(self, request: RunRequest) -> Generator[Event]:
        """The events of all runs, with one DONE for all of them: the worst exit status, and every machine's counts."""
        found = shards(request, self._largest)
        if len(found) < 2:
            yield from self._engine.run(request)
            return
        ends: list[Event] = []
        for hosts in found:
            with closing(self._engine.run(replace(request, limit=hosts))) as events:
                for event in events:
                    if event.kind is EventKind.DONE:
                        ends.append(event)
                    else:
                        yield event
        yield _together(ends)


def shards(request: RunRequest, largest: int) -> tuple[tuple[str, ...], ...]:
    """Returns the machines of each run, at most `largest`, in their order but with serving machines first."""
    hosts = request.limit or tuple(request.inventory.host_vars)
    groups = request.inventory.groups
    serving = {host for name, members in groups.items() if name not in _PLAIN_GROUPS for host in members}
    ordered = sorted(hosts, key=lambda host: host not in serving)
    if len(ordered) <= largest:
        return (request.limit,)
    return tuple(tuple(ordered[start : start + largest]) for start in range(0, len(ordered), largest))


def _together(ends: Sequence[Event]) -> Event:
    counts: dict[str, Counter[str]] = {}
    for end in ends:
        for name, by_host in end.result.items():
            counts.setdefault(name, Counter()).update(by_host if isinstance(by_host, Mapping) else {})
    result: dict[str, Any] = {name: dict(found) for name, found in counts.items()}
    return Event(EventKind.DONE, result=result, returncode=max((end.returncode for end in ends), default=0))
