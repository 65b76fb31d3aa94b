"""An Engine that replays recorded event streams: everything above the engine is tested without Ansible."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pai_install.engine.base import Event, EventKind, RunRequest
from pai_install.engine.events import read_stream


@dataclass
class ReplayEngine:
    """Returns the recorded events of each playbook, filtered by the requested hosts.

    streams: playbook name -> events. requests: all requests, in order.
    """

    streams: Mapping[str, tuple[Event, ...]]
    requests: list[RunRequest] = field(default_factory=list)

    def run(self, request: RunRequest) -> Generator[Event]:
        """Yields the recorded events of the playbook. Raises LookupError if there are none."""
        self.requests.append(request)
        if request.playbook not in self.streams:
            raise LookupError(f"{request.playbook} has no recorded events")
        wanted = set(request.limit)
        for event in self.streams[request.playbook]:
            if event.kind is EventKind.DONE or not event.host or not wanted or event.host in wanted:
                yield event


def load_stream(path: Path) -> tuple[Event, ...]:
    """The events recorded in a JSON-lines file of ansible-runner events, ending in an exit line."""
    with path.open() as lines:
        return tuple(read_stream(json.loads(line) for line in lines if line.strip()))
