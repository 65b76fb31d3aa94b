"""What Kueue would do: quota of flavors in one cohort, lent, borrowed and taken back; then room on machines. Pure.

As its cluster queues are compiled: whoever is within the guarantee takes back from those who borrow, a higher priority
takes from a lower one of the same virtual cluster, and who would borrow takes from no other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

from pai_install.kube.objects import quantity
from pai_install.schedulers.kueue.compile import cluster_queue, cohort, flavor_name
from pai_install.schedulers.simulate.model import ClusterNow, Forecast, NewJob, Placed, RunningJob, Victim
from pai_install.schedulers.simulate.place import TOLERANCE, Free, free_of, place
from pai_install.schedulers.simulate.taking import Jobs, fewest, freed, gives
from pai_install.schedulers.simulate.words import amount_of, away_of, no_room, number_of, too_large, total_of
from pai_install.scheduling.amounts import CPU, MEMORY
from pai_install.scheduling.model import Scheduling, VirtualCluster

# flavor and resource
Key = tuple[str, str]
# resources that our Kueue leaves out: what else no queue has a quota of, no job gets
_UNCOUNTED = ("ephemeral-storage", "hugepages-")
# ways to give each role a flavor that are tried
_MOST_WAYS = 64


@dataclass(frozen=True, slots=True)
class _Limits:
    """borrow: None for no limit."""

    nominal: float = 0.0
    lend: float = 0.0
    borrow: float | None = None

    @property
    def kept(self) -> float:
        """What no other may use."""
        return self.nominal - self.lend


class _Books:
    """Who may use how much of what, and does. Used amounts are given to each question: they change with victims."""

    def __init__(self, scheduling: Scheduling) -> None:
        self.limits = {it.name: dict(_limits(cluster_queue(scheduling, it))) for it in scheduling.clusters}
        self.unassigned = {key: it.nominal for key, it in _limits(cohort(scheduling))}

    def own(self, cluster: str, key: Key) -> _Limits:
        return self.limits.get(cluster, {}).get(key, _Limits(borrow=0.0))

    def common(self, key: Key) -> float:
        """All that may be lent."""
        return self.unassigned.get(key, 0.0) + sum(self.own(name, key).lend for name in self.limits)

    def idle(self, key: Key, used: Mapping[tuple[str, Key], float]) -> float:
        """What of it is idle."""
        taken = sum(max(0.0, used.get((name, key), 0.0) - self.own(name, key).kept) for name in self.limits)
        return self.common(key) - taken

    def available(self, cluster: str, key: Key, used: Mapping[tuple[str, Key], float]) -> float:
        """What a virtual cluster could have in addition, its own first, then what it may borrow."""
        mine, uses = self.own(cluster, key), used.get((cluster, key), 0.0)
        above = self.idle(key, used)
        if mine.borrow is not None:
            above = min(above, mine.lend + mine.borrow - max(0.0, uses - mine.kept))
        return max(0.0, mine.kept - uses) + above

    def most(self, cluster: str, key: Key) -> float:
        """What it could have if nothing were in use."""
        return self.available(cluster, key, {})


def _limits(item: Mapping[str, object]) -> Iterator[tuple[Key, _Limits]]:
    spec: object = item["spec"]
    assert isinstance(spec, dict)  # noqa: S101 - our own object
    for group in spec["resourceGroups"]:
        for flavor in group["flavors"]:
            for row in flavor["resources"]:
                nominal = quantity(row["nominalQuota"]) or 0.0
                lend = quantity(row["lendingLimit"]) if "lendingLimit" in row else nominal
                borrow = quantity(row["borrowingLimit"]) if "borrowingLimit" in row else None
                yield (flavor["name"], row["name"]), _Limits(nominal, lend or 0.0, borrow)


@dataclass(frozen=True)
class _Question:
    """A job, the flavors of its roles, and what it would take of each."""

    scheduling: Scheduling
    snapshot: ClusterNow
    books: _Books
    cluster: VirtualCluster
    gang: NewJob
    priority: int
    way: tuple[str, ...]

    @property
    def wants(self) -> Mapping[Key, float]:
        found: defaultdict[Key, float] = defaultdict(float)
        for role, flavor in zip(self.gang.roles, self.way, strict=True):
            for name, amount in role.asks.items():
                if not name.startswith(_UNCOUNTED):
                    found[flavor, name] += amount * role.count
        return found

    def placed(self, free: Free) -> tuple[Placed, ...] | None:
        machines = _machines_of(self.scheduling, self.cluster)
        pairs = [(role, machines[flavor]) for role, flavor in zip(self.gang.roles, self.way, strict=True)]
        return place(pairs, self.snapshot.machines, free)

    def within_quota(self, used: Mapping[tuple[str, Key], float], *, borrow: bool) -> bool:
        name = self.cluster.name
        return all(
            amount <= self.books.available(name, key, used) + TOLERANCE
            and (borrow or used.get((name, key), 0.0) + amount <= self.books.own(name, key).nominal + TOLERANCE)
            for key, amount in self.wants.items()
        )


def kueue_verdict(
    scheduling: Scheduling, snapshot: ClusterNow, cluster: VirtualCluster, gang: NewJob, priority: int
) -> Forecast:
    """The best way of all: within the guarantee, then borrowing, then by taking back."""
    books = _Books(scheduling)
    flavors = tuple(_machines_of(scheduling, cluster))
    ways = islice(product(flavors, repeat=len(gang.roles)), _MOST_WAYS)
    questions = [_Question(scheduling, snapshot, books, cluster, gang, priority, way) for way in ways]
    used, free = _used(snapshot.jobs), free_of(snapshot.machines)
    for borrow in (False, True):
        for question in questions:
            if question.within_quota(used, borrow=borrow) and (placed := question.placed(free)) is not None:
                return Forecast("starts", tuple(_borrowing(question, used)), placed)
    for question in questions:
        found = _taking_back(question, used, free)
        if found is not None:
            return found
    return _waits(questions, used)


def _machines_of(scheduling: Scheduling, cluster: VirtualCluster) -> Mapping[str, tuple[str, ...]]:
    """Flavor -> machines, in the order in which a job tries them."""
    found: dict[str, tuple[str, ...]] = {}
    for sku, supply in sorted(scheduling.supply.items(), key=lambda item: bool(item[1].resource)):
        own = tuple(it for it in supply.machines if it in cluster.pinned)
        if own:
            found[flavor_name(scheduling, sku, cluster)] = own
        if cluster.share(sku) is not None:
            found[flavor_name(scheduling, sku)] = tuple(it for it in supply.machines if it not in scheduling.pinned)
    return found


def _used(jobs: Sequence[RunningJob]) -> dict[tuple[str, Key], float]:
    found: defaultdict[tuple[str, Key], float] = defaultdict(float)
    for job in jobs:
        for key, amount in job.uses.items():
            found[job.cluster, key] += amount
    return dict(found)


def _borrowing(question: _Question, used: Mapping[tuple[str, Key], float]) -> Iterator[str]:
    name = question.cluster.name
    for key, amount in question.wants.items():
        over = used.get((name, key), 0.0) + amount - question.books.own(name, key).nominal
        if over > TOLERANCE and key[1] not in (CPU, MEMORY):
            lent = amount_of(key[1], min(over, amount))
            yield f"{name} borrows {lent} of {key[0]}: who is guaranteed them may take them back"


def _taking_back(question: _Question, used: dict[tuple[str, Key], float], free: Free) -> Forecast | None:
    """First from anyone, where the job stays within the guarantee; then, borrowing, from its own virtual cluster."""
    for own_only in (False, True):
        victims = _victims(question, used, free, own_only=own_only)
        if victims is not None:
            left = _without(used, victims)
            placed = question.placed(freed(question.snapshot, free, victims))
            told = tuple(Victim(it.name, it.cluster, gives(it), _why(question, it)) for it in victims)
            return Forecast("takes-back", tuple(_borrowing(question, left)), placed or (), told)
    return None


def _victims(
    question: _Question, used: dict[tuple[str, Key], float], free: Free, *, own_only: bool
) -> list[RunningJob] | None:
    def fits(victims: Jobs) -> bool:
        room = freed(question.snapshot, free, victims)
        within = question.within_quota(_without(used, victims), borrow=own_only)
        return within and question.placed(room) is not None

    def may(job: RunningJob, before: Jobs) -> bool:
        return job.cluster == question.cluster.name or _borrows(question, job, _without(used, before))

    return fewest(_candidates(question, own_only=own_only), may, fits)


def _candidates(question: _Question, *, own_only: bool) -> list[RunningJob]:
    """In Kueue's order: others before one's own, low priority first, the newest first."""
    jobs = [it for it in question.snapshot.jobs if any(key in question.wants for key in it.uses)]
    newest = sorted(jobs, key=lambda it: it.since, reverse=True)
    lowest = sorted(newest, key=lambda it: it.priority)
    own = [it for it in lowest if it.cluster == question.cluster.name and it.priority < question.priority]
    others = [it for it in lowest if it.cluster != question.cluster.name]
    return own if own_only else [*others, *own]


def _borrows(question: _Question, job: RunningJob, used: Mapping[tuple[str, Key], float]) -> bool:
    """Whether its virtual cluster has more than it is guaranteed of something that both use."""
    return any(
        used.get((job.cluster, key), 0.0) > question.books.own(job.cluster, key).nominal + TOLERANCE
        for key in job.uses
        if key in question.wants
    )


def _without(used: Mapping[tuple[str, Key], float], victims: Jobs) -> dict[tuple[str, Key], float]:
    left = dict(used)
    for job in victims:
        for key, amount in job.uses.items():
            left[job.cluster, key] -= amount
    return left


def _why(question: _Question, job: RunningJob) -> str:
    if job.cluster == question.cluster.name:
        return f"its priority is lower ({job.priority} < {question.priority})"
    return f"{job.cluster} borrows"


def _waits(questions: Sequence[_Question], used: Mapping[tuple[str, Key], float]) -> Forecast:
    """The rule that stops the way that comes nearest."""
    if not questions:
        return Forecast("never", ("this virtual cluster has no share of any machine type",))
    one = questions[0]
    machines = _machines_of(one.scheduling, one.cluster)
    usable = [it for it in one.snapshot.machines if any(it.name in names for names in machines.values())]
    if large := too_large(one.gang, usable):
        return Forecast("never", large)
    possible = [it for it in questions if not _beyond(it)]
    if not possible:
        short = min((_beyond(it) for it in questions), key=len)
        return Forecast("never", short)
    roomy = [it for it in possible if it.placed(free_of(one.snapshot.machines, idle=True)) is not None]
    if not roomy:
        return Forecast("never", (f"its machines have no room for {total_of(one.gang.asks)} even when all are idle",))
    least = min(roomy, key=lambda it: len(_short(it, used)))
    away = tuple(f"{it} and takes no pods" for it in away_of(usable))
    return Forecast("waits", _short(least, used) or (no_room(one.gang, usable),), notes=away)


def _beyond(question: _Question) -> tuple[str, ...]:
    """What the job asks for that its virtual cluster could never have."""
    name, books = question.cluster.name, question.books
    return tuple(
        f"asks for {amount_of(key[1], amount)} of {key[0]}, {name} may have {amount_of(key[1], books.most(name, key))} "
        f"({number_of(key[1], books.own(name, key).nominal)} guaranteed, {_limit(books.own(name, key), key[1])})"
        for key, amount in question.wants.items()
        if amount > books.most(name, key) + TOLERANCE
    )


def _short(question: _Question, used: Mapping[tuple[str, Key], float]) -> tuple[str, ...]:
    """What there is too little of now, and why there is no more."""
    name, books = question.cluster.name, question.books
    return tuple(
        f"{name}'s quota of {key[1]} on {key[0]} is {number_of(key[1], books.own(name, key).nominal)}, "
        f"{number_of(key[1], used.get((name, key), 0.0))} in use, {_limit(books.own(name, key), key[1])}: "
        f"{number_of(key[1], max(0.0, books.available(name, key, used)))} are available now, the job asks for "
        f"{number_of(key[1], amount)}"
        for key, amount in question.wants.items()
        if amount > books.available(name, key, used) + TOLERANCE
    )


def _limit(limits: _Limits, resource: str) -> str:
    if limits.borrow is None:
        return "it borrows what is idle"
    return f"it borrows up to {number_of(resource, limits.borrow)}" if limits.borrow else "borrowing is off"
