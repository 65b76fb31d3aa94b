"""What jobs use, and which wait, as values. Pure."""

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
class SeenJob:
    """A job of a virtual cluster that has not ended. name: with its namespace.

    waits: it has nothing yet. units: resource -> what it asks for; of cores the resource is "". priority: as a number,
    0 where the scheduler does not keep it.
    """

    cluster: str
    name: str
    waits: bool
    units: Mapping[str, int] = field(default_factory=dict)
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """What the scheduler's objects say. unknown: virtual clusters whose jobs have no mark of their own."""

    uses: tuple[Use, ...] = ()
    jobs: tuple[SeenJob, ...] = ()
    unknown: frozenset[str] = frozenset()
