"""The usage and the pending jobs as values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Use:
    """Units of an SKU that jobs of a virtual cluster have now.

    units: all of them. own: those on machines of its own. borrowed: those beyond its guarantee.
    """

    cluster: str
    sku: str
    units: int
    own: int = 0
    borrowed: int = 0

    @property
    def kept(self) -> int:
        """Units of its guarantee on shared machines that it uses itself."""
        return self.units - self.own - self.borrowed


@dataclass(frozen=True, slots=True)
class UnfinishedJob:
    """An unfinished job of a virtual cluster. name: with its namespace.

    waits: it has no resources yet. units: resource -> request, "" for cores. priority: number, 0 if the scheduler does
    not keep it.
    """

    cluster: str
    name: str
    waits: bool
    units: Mapping[str, int] = field(default_factory=dict)
    priority: int = 0


@dataclass(frozen=True, slots=True)
class SchedulerState:
    """The state of the scheduler's objects. unknown: virtual clusters with unmarked jobs."""

    uses: tuple[Use, ...] = ()
    jobs: tuple[UnfinishedJob, ...] = ()
    unknown: frozenset[str] = frozenset()
