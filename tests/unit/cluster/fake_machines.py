"""Machines in memory: what a program prints there, and which machines are off."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from pai_install.cluster.machines import MachineError


@dataclass
class FakeMachines:
    """answer: host, program -> its lines. off: unreachable machines. asked: what was asked."""

    answer: Callable[[str, Sequence[str]], Sequence[str]] = lambda _host, _program: ()
    off: frozenset[str] = frozenset()
    asked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def lines(self, host: str, program: Sequence[str]) -> Generator[str]:
        """The lines, or MachineError for a machine that is off."""
        self.asked.append((host, tuple(program)))
        if host in self.off:
            raise MachineError(host, "No route to host", unreachable=True)
        yield from self.answer(host, program)
