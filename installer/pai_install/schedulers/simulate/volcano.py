"""What Volcano would do: one quota per resource and queue, groups of machines, whole gangs, reclaim. Pure.

Priorities only order what waits: our configuration of Volcano has no action that takes from a job of the same queue.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from pai_install.kube.objects import child, quantities
from pai_install.schedulers.simulate.model import Amounts, ClusterNow, Forecast, NewJob, Placed, RunningJob, Victim
from pai_install.schedulers.simulate.place import TOLERANCE, Free, free_of, place
from pai_install.schedulers.simulate.taking import Jobs, fewest, freed, gives
from pai_install.schedulers.simulate.words import amount_of, away_of, no_room, too_large
from pai_install.schedulers.volcano.compile import queue
from pai_install.scheduling.amounts import CPU, MEMORY
from pai_install.scheduling.model import Scheduling, VirtualCluster

Used = Mapping[str, Mapping[str, float]]
_PLAIN = (CPU, MEMORY)
_RESTART = "Volcano evicts pods: a job without the policy PodEvicted -> RestartJob keeps the rest"


def volcano_verdict(
    scheduling: Scheduling, snapshot: ClusterNow, cluster: VirtualCluster, gang: NewJob, _priority: int
) -> Forecast:
    """Now where there is room, else by taking back what the queue deserves."""
    machines = _machines(scheduling, snapshot, cluster)
    usable = [it for it in snapshot.machines if it.name in machines]
    most, asks, mine = _most(scheduling, snapshot, cluster), gang.asks, _used(snapshot.jobs).get(cluster.name, {})
    never = too_large(gang, usable) or tuple(_beyond(cluster, most, asks))
    if not never and _room(snapshot, machines, gang, free_of(snapshot.machines, idle=True)) is None:
        never = ("its machines have no room for all of it even when all are idle",)
    if never:
        return Forecast("never", never)
    away = tuple(f"{it} and takes no pods" for it in away_of(usable))
    if short := tuple(_short(cluster, most, mine, asks)):
        return Forecast("waits", short, notes=away)
    free = free_of(snapshot.machines)
    if (placed := _room(snapshot, machines, gang, free)) is not None:
        return Forecast("starts", tuple(_borrowing(scheduling, cluster, mine, asks)), placed)
    found = _taken(scheduling, snapshot, cluster, gang, free)
    if isinstance(found, str):
        return Forecast("waits", (no_room(gang, usable), found), notes=away)
    victims, where = found
    told = tuple(Victim(it.name, it.cluster, gives(it), f"{it.cluster} borrows") for it in victims)
    return Forecast("takes-back", (), where, told, (_RESTART,))


def _room(snapshot: ClusterNow, machines: tuple[str, ...], gang: NewJob, free: Free) -> tuple[Placed, ...] | None:
    return place([(role, machines) for role in gang.roles], snapshot.machines, free)


def _machines(scheduling: Scheduling, snapshot: ClusterNow, cluster: VirtualCluster) -> tuple[str, ...]:
    """Those of the groups that the queue names."""
    shared = {share.sku for share in cluster.shares}
    return tuple(
        it.name
        for it in snapshot.machines
        if it.name in cluster.pinned or (it.sku in shared and it.name not in scheduling.pinned)
    )


def _part(scheduling: Scheduling, cluster: VirtualCluster, *path: str) -> Amounts:
    return quantities(child(queue(scheduling, cluster)["spec"], *path))


def _most(scheduling: Scheduling, snapshot: ClusterNow, cluster: VirtualCluster) -> Amounts:
    """The queue's capability; nothing of what others never lend."""
    limit = _part(scheduling, cluster, "capability")
    kept = [_part(scheduling, it, "guarantee", "resource") for it in scheduling.clusters if it.name != cluster.name]
    total: defaultdict[str, float] = defaultdict(float)
    for machine in snapshot.machines:
        for name, amount in machine.whole.items():
            total[name] += amount
    left = {name: total[name] - sum(it.get(name, 0.0) for it in kept) for name in total}
    return {name: min(left.get(name, 0.0), limit.get(name, float("inf"))) for name in {*left, *limit}}


def _used(jobs: Sequence[RunningJob]) -> dict[str, dict[str, float]]:
    found: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for job in jobs:
        for (_, resource), amount in job.uses.items():
            found[job.cluster][resource] += amount
    return {name: dict(amounts) for name, amounts in found.items()}


def _beyond(cluster: VirtualCluster, most: Amounts, asks: Amounts) -> Iterator[str]:
    for name, amount in asks.items():
        if amount > most.get(name, 0.0) + TOLERANCE:
            has = amount_of(name, max(0.0, most.get(name, 0.0)))
            yield f"asks for {amount_of(name, amount)}, {cluster.name} may have {has}"


def _short(cluster: VirtualCluster, most: Amounts, mine: Amounts, asks: Amounts) -> Iterator[str]:
    for name, amount in asks.items():
        if mine.get(name, 0.0) + amount > most.get(name, 0.0) + TOLERANCE:
            used, limit = amount_of(name, mine.get(name, 0.0)), amount_of(name, most.get(name, 0.0))
            yield f"{cluster.name} may have {limit}, {used} in use; the job asks for {amount_of(name, amount)}"


def _borrowing(scheduling: Scheduling, cluster: VirtualCluster, mine: Amounts, asks: Amounts) -> Iterator[str]:
    deserved = _part(scheduling, cluster, "deserved")
    for name, amount in asks.items():
        over = mine.get(name, 0.0) + amount - deserved.get(name, 0.0)
        if over > TOLERANCE and name not in _PLAIN:
            lent = amount_of(name, min(over, amount))
            yield f"{cluster.name} borrows {lent}: who is guaranteed them may take them back"


def _taken(
    scheduling: Scheduling, snapshot: ClusterNow, cluster: VirtualCluster, gang: NewJob, free: Free
) -> tuple[list[RunningJob], tuple[Placed, ...]] | str:
    """Jobs of queues that have more than they deserve, until the gang has room; or why not."""
    deserved = {it.name: _part(scheduling, it, "deserved") for it in scheduling.clusters}
    used, asks = _used(snapshot.jobs), gang.asks
    mine = used.get(cluster.name, {})
    for name, amount in asks.items():
        if mine.get(name, 0.0) + amount > deserved[cluster.name].get(name, 0.0) + TOLERANCE:
            has, uses = (amount_of(name, it.get(name, 0.0)) for it in (deserved[cluster.name], mine))
            return f"{cluster.name} takes back no more than its guarantee of {has}, {uses} in use"
    machines = _machines(scheduling, snapshot, cluster)
    needed = [name for name in asks if name not in _PLAIN] or list(asks)

    def may(job: RunningJob, before: Jobs) -> bool:
        has = _used([it for it in snapshot.jobs if it not in before]).get(job.cluster, {})
        owed = deserved.get(job.cluster, has)
        return any(has.get(it, 0.0) > owed.get(it, 0.0) + TOLERANCE for it in needed)

    def fits(victims: Jobs) -> bool:
        return _room(snapshot, machines, gang, freed(snapshot, free, victims)) is not None

    others = [it for it in snapshot.jobs if it.cluster != cluster.name and set(it.on) & set(machines)]
    taken = fewest(sorted(others, key=lambda it: it.priority), may, fits)
    if taken is None:
        return "no other virtual cluster has more than its guarantee on enough of these machines"
    return taken, _room(snapshot, machines, gang, freed(snapshot, free, taken)) or ()
