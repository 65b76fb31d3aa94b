"""What Kubernetes' own scheduler would do: a limit per namespace, then pod by pod whatever fits. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pai_install.kube.objects import quantities
from pai_install.schedulers.kubernetes.compile import default_objects
from pai_install.schedulers.simulate.model import Amounts, ClusterNow, Forecast, GangRole, NewJob
from pai_install.schedulers.simulate.place import TOLERANCE, Free, free_of, place, room_for
from pai_install.schedulers.simulate.words import amount_of, away_of, no_room, too_large
from pai_install.scheduling.model import Scheduling, VirtualCluster

_REQUESTS = "requests."


def default_verdict(
    scheduling: Scheduling, snapshot: ClusterNow, _cluster: VirtualCluster, gang: NewJob, _priority: int
) -> Forecast:
    """It starts where all pods have quota and room. Where only some have, these start and hold what they have."""
    if large := too_large(gang, snapshot.machines):
        return Forecast("never", large)
    everywhere = [it.name for it in snapshot.machines]
    pairs = [(role, everywhere) for role in gang.roles]
    if place(pairs, snapshot.machines, free_of(snapshot.machines, idle=True)) is None:
        return Forecast("never", ("the machines have no room for all of it even when all are idle",))
    hard, used = _hard(scheduling, gang.namespace), snapshot.spaces.get(gang.namespace, {})
    if never := tuple(_over(gang, hard, {}, "{0} is limited to {1}, the job asks for {3}")):
        return Forecast("never", never)
    free = free_of(snapshot.machines)
    over = tuple(_over(gang, hard, used, "the quota of {0} is {1}, {2} in use; the job asks for {3}"))
    placed = place(pairs, snapshot.machines, free)
    if not over and placed is not None:
        return Forecast("starts", placed=placed)
    away = tuple(f"{it} and takes no pods" for it in away_of(snapshot.machines))
    why = over or (no_room(gang, snapshot.machines),)
    return Forecast("waits", why, notes=(*_in_part(gang, hard, used, free, snapshot), *away))


def _hard(scheduling: Scheduling, namespace: str) -> Amounts:
    """Resource -> limit of the namespace's quota."""
    for item in default_objects(scheduling):
        if item["kind"] == "ResourceQuota" and item["metadata"]["namespace"] == namespace:
            found = quantities(item["spec"]["hard"])
            return {name.removeprefix(_REQUESTS): amount for name, amount in found.items()}
    return {}


def _over(gang: NewJob, hard: Amounts, used: Amounts, sentence: str) -> Iterator[str]:
    for name, amount in gang.asks.items():
        if name in hard and used.get(name, 0.0) + amount > hard[name] + TOLERANCE:
            numbers = (amount_of(name, it) for it in (hard[name], used.get(name, 0.0), amount))
            yield sentence.format(gang.namespace, *numbers)


def _in_part(gang: NewJob, hard: Amounts, used: Amounts, free: Free, snapshot: ClusterNow) -> Iterator[str]:
    """How many pods start all the same."""
    left: Mapping[str, float] = {name: amount - used.get(name, 0.0) for name, amount in hard.items()}
    pods, names = 0, list(free)
    for role in gang.roles:
        limits = {name: amount for name, amount in role.asks.items() if name in left}
        most = min(role.count, room_for(limits, left) if limits else role.count)
        started = next((it for it in range(most, 0, -1) if _fits(role, it, names, snapshot, free)), 0)
        pods += started
        left = {name: amount - role.asks.get(name, 0.0) * started for name, amount in left.items()}
        placed = place([(replace(role, count=started), names)], snapshot.machines, free) if started else ()
        for row in placed or ():
            for name, amount in role.asks.items():
                free[row.machine][name] = free[row.machine].get(name, 0.0) - amount * row.pods
    if pods:
        some = f"{pods} of {gang.pods} pods start at once and hold what they have"
        yield f"{some} while the others wait: nothing starts whole here"


def _fits(role: GangRole, count: int, names: list[str], snapshot: ClusterNow, free: Free) -> bool:
    return place([(replace(role, count=count), names)], snapshot.machines, free) is not None
