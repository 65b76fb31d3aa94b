"""What HiveD would do: cells that a virtual cluster is guaranteed, whole machines and single ones. Pure.

Below the machine (sockets, switches) and above it (racks) nothing is told apart here. Jobs of priority oppo use any
idle cell and are the first to go; all others have the cells of their own virtual cluster, and take them from oppo.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pai_install.schedulers.simulate.manifest import CELLS
from pai_install.schedulers.simulate.model import ClusterNow, Forecast, MachineNow, NewJob, Placed, RunningJob, Victim
from pai_install.schedulers.simulate.place import free_of, place
from pai_install.schedulers.simulate.taking import Jobs, fewest, freed, gives
from pai_install.schedulers.simulate.words import amount_of, away_of, no_room, too_large
from pai_install.scheduling.amounts import guaranteed
from pai_install.scheduling.model import PRIORITIES, Scheduling, VirtualCluster

_CELLS_NOTE = "cells between device and machine, and above the machine, are not looked at"


def hived_verdict(
    scheduling: Scheduling, snapshot: ClusterNow, cluster: VirtualCluster, gang: NewJob, priority: int
) -> Forecast:
    """The first machine type that has it; a gang is never of two."""
    asked = _in_cells(scheduling, gang)
    choices = {gang.pinned: [gang.pinned]} if gang.pinned else _shared(scheduling)
    found = [_of_sku(scheduling, snapshot, cluster, asked, priority, sku, names) for sku, names in choices.items()]
    if not found:
        return Forecast("never", ("no machine is there",))
    order = ("starts", "takes-back", "waits", "never", "refused")
    best = min(found, key=lambda it: order.index(it.outcome))
    if best.outcome in ("waits", "never"):
        told = dict.fromkeys(why for it in found if it.outcome == best.outcome for why in it.why)
        best = replace(best, why=tuple(told))
    return replace(best, notes=(*best.notes, _CELLS_NOTE))


def _in_cells(scheduling: Scheduling, gang: NewJob) -> NewJob:
    """Devices that a job asks Kubernetes for are cells here."""
    devices = {supply.resource for supply in scheduling.supply.values() if supply.resource}
    roles = []
    for role in gang.roles:
        cells = role.asks.get(CELLS) or sum(role.asks.get(name, 0.0) for name in devices)
        others = {name: amount for name, amount in role.asks.items() if name not in devices | {CELLS}}
        roles.append(replace(role, asks={**others, **({CELLS: cells} if cells else {})}))
    return replace(gang, roles=tuple(roles))


def _shared(scheduling: Scheduling) -> Mapping[str, list[str]]:
    return {
        sku: [it for it in supply.machines if it not in scheduling.pinned] for sku, supply in scheduling.supply.items()
    }


def _of_sku(
    scheduling: Scheduling,
    snapshot: ClusterNow,
    cluster: VirtualCluster,
    gang: NewJob,
    priority: int,
    sku: str,
    names: list[str],
) -> Forecast:
    usable = [it for it in snapshot.machines if it.name in names]
    if gang.pinned and gang.pinned not in cluster.pinned:
        return Forecast("never", (f"{gang.pinned} is not pinned to {cluster.name}",))
    if large := too_large(gang, usable):
        return Forecast("never", tuple(f"{sku}: {it}" for it in large))
    borrows = priority == PRIORITIES["oppo"]
    cells = None if borrows or gang.pinned else _cells(scheduling, cluster, sku)
    if cells is not None and _into(gang, cells) is None:
        has = amount_of(CELLS, guaranteed(scheduling, cluster, sku).units)
        return Forecast("never", (f"{sku}: {cluster.name} is guaranteed {has}, in cells that do not hold this job",))
    pairs = [(role, names) for role in gang.roles]
    if place(pairs, snapshot.machines, free_of(snapshot.machines, idle=True)) is None:
        return Forecast("never", (f"{sku}: its machines have no room for all of it even when all are idle",))
    return _now(snapshot, cluster, gang, priority, (sku, names), cells)


def _now(
    snapshot: ClusterNow,
    cluster: VirtualCluster,
    gang: NewJob,
    priority: int,
    place_of: tuple[str, list[str]],
    cells: list[float] | None,
) -> Forecast:
    """Now, or by taking from jobs of oppo and from lower ones of the same virtual cluster."""
    sku, names = place_of
    pairs = [(role, names) for role in gang.roles]
    free = free_of(snapshot.machines)

    def within(victims: Jobs) -> bool:
        held = _held([job for job in snapshot.jobs if job not in victims], cluster, names)
        return cells is None or _into(gang, _left_of(cells, held)) is not None

    def room(victims: Jobs) -> tuple[Placed, ...] | None:
        return place(pairs, snapshot.machines, freed(snapshot, free, victims))

    def fits(victims: Jobs) -> bool:
        return within(victims) and room(victims) is not None

    candidates = tuple(_candidates(snapshot, cluster, priority, names))
    taken = [] if fits(()) else fewest(candidates, lambda _job, _before: True, fits)
    if taken is not None:
        why = ("priority oppo: whoever is guaranteed these devices takes them back",) if priority < 0 else ()
        told = tuple(Victim(it.name, it.cluster, gives(it), _rule(it, priority)) for it in taken)
        return Forecast("takes-back" if told else "starts", why, room(taken) or (), told)
    usable = [it for it in snapshot.machines if it.name in names]
    why_not = no_room(gang, usable)
    if not within(candidates):
        used, whole = amount_of(CELLS, sum(_held(snapshot.jobs, cluster, names))), amount_of(CELLS, sum(cells or ()))
        why_not = f"the cells of {cluster.name} are {whole}, {used} in use by jobs from which this one takes nothing"
    return Forecast("waits", (f"{sku}: {why_not}",), notes=tuple(f"{it} and takes no pods" for it in away_of(usable)))


def _cells(scheduling: Scheduling, cluster: VirtualCluster, sku: str) -> list[float]:
    """Its cells on shared machines: of each whole machine, and a single one for each of the rest."""
    share, units = cluster.share(sku), scheduling.supply[sku].units
    whole, single = divmod(share.units if share is not None else 0, units)
    return [float(units)] * whole + [1.0] * single


def _held(jobs: Sequence[RunningJob], cluster: VirtualCluster, names: Sequence[str]) -> list[float]:
    """Cells of its own that its jobs have, machine by machine."""
    found: Counter[str] = Counter()
    for job in jobs:
        if job.cluster == cluster.name and not job.borrows:
            for machine, amounts in job.on.items():
                if machine in names:
                    found[machine] += int(amounts.get(CELLS, 0.0))
    return sorted(map(float, found.values()), reverse=True)


def _left_of(cells: Sequence[float], held: Sequence[float]) -> list[float]:
    """What is left of them: each machine in use is a cell of its own, the largest use of the largest."""
    left, number = sorted(cells, reverse=True), 0
    for used in held:
        rest = used
        while rest > 0 and number < len(left):
            part = min(left[number], rest)
            left[number], rest, number = left[number] - part, rest - part, number + 1
    return left


def _into(gang: NewJob, cells: Sequence[float]) -> tuple[Placed, ...] | None:
    """The gang's devices in these cells."""
    machines = [MachineNow(str(number), "", {CELLS: cell}, {CELLS: cell}) for number, cell in enumerate(cells)]
    asks = [
        (replace(role, asks={CELLS: role.asks[CELLS]}, terms=(), within=""), [it.name for it in machines])
        for role in gang.roles
        if CELLS in role.asks
    ]
    return place(asks, machines, free_of(machines))


def _candidates(
    snapshot: ClusterNow, cluster: VirtualCluster, priority: int, names: Sequence[str]
) -> Iterator[RunningJob]:
    """Jobs of oppo, for any other; then lower ones of the same virtual cluster."""
    there = [job for job in snapshot.jobs if set(job.on) & set(names)]
    if priority >= 0:
        yield from (job for job in there if job.borrows)
    own = [job for job in there if job.cluster == cluster.name and not job.borrows and job.priority < priority]
    yield from sorted(own, key=lambda it: it.priority)


def _rule(job: RunningJob, priority: int) -> str:
    return "it is of priority oppo" if job.borrows else f"its priority is lower ({job.priority} < {priority})"
