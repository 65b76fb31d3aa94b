"""What must not be seen while a step of the self-test runs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pai_install.schedulers.self_test.model import Gang, Sample, Violation


@dataclass(frozen=True, slots=True)
class DeviceLimit:
    """Gangs hold no more than so many units together."""

    message: str
    gangs: tuple[str, ...]
    units: int = 0

    def violation(self, samples: Sequence[Sample], gangs: Mapping[str, Gang]) -> Violation | None:
        """The most units at once, where they are too many."""
        held = max((sum(one.of(name).held for name in self.gangs) for one in samples), default=0)
        wanted = sum(gangs[name].size for name in self.gangs)
        return Violation(self.message, f"{held} of {wanted} pods", str(self.units)) if held > self.units else None


@dataclass(frozen=True, slots=True)
class PartialAtMost:
    """A gang holds some of its units, and not all, for no longer than so many seconds."""

    message: str
    gang: str
    seconds: float

    def violation(self, samples: Sequence[Sample], gangs: Mapping[str, Gang]) -> Violation | None:
        """The longest time."""
        size = gangs[self.gang].size
        longest = _longest(samples, lambda it: 0 < it.of(self.gang).held < size - it.of(self.gang).ended)
        if longest <= self.seconds:
            return None
        return Violation(self.message, f"{longest:.0f} s", f"{self.seconds:g} s")


def _longest(samples: Iterable[Sample], holds: Callable[[Sample], bool]) -> float:
    """The longest time for which something held, from the look that saw it first to that which no longer did."""
    longest, since = 0.0, None
    for one in samples:
        longest = max(longest, one.at_s - since) if since is not None else longest
        since = (one.at_s if since is None else since) if holds(one) else None
    return longest


@dataclass(frozen=True, slots=True)
class NotTogether:
    """Gangs do not all hold units while none of their pods has ended."""

    message: str
    gangs: tuple[str, ...]

    def violation(self, samples: Sequence[Sample], gangs: Mapping[str, Gang]) -> Violation | None:
        """The first time that they did."""
        for sample in samples:
            seen = {name: sample.of(name) for name in self.gangs}
            if all(one.held for one in seen.values()) and not any(one.ended for one in seen.values()):
                held = (f"{one.held} of {gangs[name].size}" for name, one in seen.items())
                return Violation(self.message, " and ".join(held))
        return None


@dataclass(frozen=True, slots=True)
class RunsFirst:
    """When all pods of one gang have started, the other has not run."""

    message: str
    first: str
    other: str

    def violation(self, samples: Sequence[Sample], gangs: Mapping[str, Gang]) -> Violation | None:
        """What the other had done by then, if that was seen."""
        size = gangs[self.first].size
        started = (it for it in samples if it.of(self.first).held + it.of(self.first).ended >= size)
        other = next((it.of(self.other) for it in started), None)
        if other is None:
            return Violation(f"the job {self.first} was too quick to be seen", unseen=True)
        return Violation(self.message) if other.done or other.ended else None
