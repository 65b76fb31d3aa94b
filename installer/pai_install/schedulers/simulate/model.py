"""A job that is not there yet, the cluster as it is now, and what is said of both, as values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

# resource -> amount, in Kubernetes' base units
Amounts = Mapping[str, float]
# starts: now. takes-back: now, after others are evicted. waits: others have to end. never: not with these machines
# and rules. refused: the API server does not take it.
Outcome = Literal["starts", "takes-back", "waits", "never", "refused"]


@dataclass(frozen=True, slots=True)
class Term:
    """One condition on the labels of a machine, as a node affinity writes it."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GangRole:
    """Pods that are alike. asks: of one pod. within: the label of the level of topology that holds them all.

    terms: all of one of these must hold; empty: any machine. tolerates: (key, value, effect), "" for any.
    """

    name: str
    count: int
    asks: Amounts
    terms: tuple[tuple[Term, ...], ...] = ()
    tolerates: tuple[tuple[str, str, str], ...] = ()
    within: str = ""


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job that starts whole. cluster, namespace, priority: "" where it names none.

    number: of a priority that has no name, None for none. pinned: the machine that it names (HiveD).
    """

    name: str
    roles: tuple[GangRole, ...]
    cluster: str = ""
    namespace: str = ""
    priority: str = ""
    number: int | None = None
    pinned: str = ""
    kind: str = "Job"

    @property
    def asks(self) -> Amounts:
        """All pods together."""
        total: dict[str, float] = {}
        for role in self.roles:
            for name, amount in role.asks.items():
                total[name] = total.get(name, 0.0) + amount * role.count
        return total

    @property
    def pods(self) -> int:
        """How many start together."""
        return sum(role.count for role in self.roles)


@dataclass(frozen=True, slots=True)
class MachineNow:
    """A worker. whole, free: what it offers pods, and what of it no pod has. away: why it takes no pods, "" if it does.

    taints: (key, value, effect).
    """

    name: str
    sku: str
    whole: Amounts
    free: Amounts
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[tuple[str, str, str], ...] = ()
    away: str = ""


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that has something. on: machine -> what its pods have there. uses: (pool, resource) -> amount of quota.

    A pool is what the scheduler counts by: a flavor with Kueue, an SKU with HiveD, "" where there is one. since: when
    it started, as the API writes it. borrows: it has what others leave idle (HiveD).
    """

    cluster: str
    name: str
    priority: int
    on: Mapping[str, Amounts]
    uses: Mapping[tuple[str, str], float]
    since: str = ""
    borrows: bool = False


@dataclass(frozen=True, slots=True)
class ClusterNow:
    """The cluster. spaces: namespace -> what its pods ask for. waiting: virtual cluster -> jobs that have nothing."""

    machines: tuple[MachineNow, ...]
    jobs: tuple[RunningJob, ...] = ()
    spaces: Mapping[str, Amounts] = field(default_factory=dict)
    waiting: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Placed:
    """Pods of a role on a machine."""

    role: str
    machine: str
    pods: int


@dataclass(frozen=True, slots=True)
class Victim:
    """A job that would be evicted. units: resource -> how much it gives back. why: the rule, in words."""

    job: str
    cluster: str
    units: Amounts
    why: str


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is said. why: the rules that decide, in words. notes: what else is to be known."""

    outcome: Outcome
    why: tuple[str, ...] = ()
    placed: tuple[Placed, ...] = ()
    victims: tuple[Victim, ...] = ()
    notes: tuple[str, ...] = ()
