"""Which machines take the pods of a job: those of the same role fill one machine after the other. Pure.

Of several roles the pods that ask for most are placed first. That finds a way where pods are of one size; where they
are not, a cleverer order might still find one: then it is said that a job waits which starts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pai_install.schedulers.simulate.model import Amounts, GangRole, MachineNow, Placed, Term

# a sum of thousandths is not exact
TOLERANCE = 1e-6
_KEEPS_OUT = ("NoSchedule", "NoExecute")
# a machine -> what is free there
Free = dict[str, dict[str, float]]


def free_of(machines: Iterable[MachineNow], *, idle: bool = False) -> Free:
    """What pods may have now, or with `idle` if no pod were there."""
    return {it.name: dict(it.whole if idle else it.free) for it in machines if idle or not it.away}


def takes(machine: MachineNow, role: GangRole) -> bool:
    """Whether pods of the role may be there at all."""
    kept_out = any(not _tolerated(taint, role) for taint in machine.taints if taint[2] in _KEEPS_OUT)
    chosen = not role.terms or any(all(_holds(term, machine.labels) for term in terms) for terms in role.terms)
    return chosen and not kept_out


def _tolerated(taint: tuple[str, str, str], role: GangRole) -> bool:
    return any(
        all(wanted in ("", found) for wanted, found in zip(toleration, taint, strict=True))
        for toleration in role.tolerates
    )


def _holds(term: Term, labels: Mapping[str, str]) -> bool:
    value = labels.get(term.key)
    match term.operator:
        case "In":
            return value in term.values
        case "NotIn":
            return value not in term.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:  # Gt and Lt: not understood, so not promised
            return False


def place(
    roles: Sequence[tuple[GangRole, Collection[str]]], machines: Sequence[MachineNow], free: Free
) -> tuple[Placed, ...] | None:
    """All pods of all roles, each on one of the machines that are named beside it; None where one has no place."""
    left = {name: dict(amounts) for name, amounts in free.items()}
    found: list[Placed] = []
    for role, allowed in sorted(roles, key=lambda pair: max(pair[0].asks.values(), default=0.0), reverse=True):
        fitting = [it for it in machines if it.name in allowed and it.name in left and takes(it, role)]
        placed = next((rows for domain in _domains(role, fitting) if (rows := _fill(role, domain, left))), None)
        if placed is None:
            return None
        for row in placed:
            for name, amount in role.asks.items():
                left[row.machine][name] = left[row.machine].get(name, 0.0) - amount * row.pods
        found += placed
    order = {role.name: number for number, (role, _) in enumerate(roles)}
    return tuple(sorted(found, key=lambda row: order[row.role]))


def _domains(role: GangRole, machines: Sequence[MachineNow]) -> Iterator[Sequence[MachineNow]]:
    """The machines themselves, or those of each domain of the level that is to hold all pods."""
    if not role.within:
        yield machines
        return
    for value in dict.fromkeys(it.labels.get(role.within) for it in machines):
        if value is not None:
            yield [it for it in machines if it.labels.get(role.within) == value]


def _fill(role: GangRole, machines: Sequence[MachineNow], free: Free) -> list[Placed] | None:
    """The fullest machines first, so that whole ones stay whole."""
    wanted, rows = role.count, []
    room = {it.name: room_for(role.asks, free[it.name]) for it in machines}
    for name in sorted((name for name, pods in room.items() if pods), key=lambda name: room[name]):
        pods = min(wanted, room[name])
        rows.append(Placed(role.name, name, pods))
        wanted -= pods
        if not wanted:
            return rows
    return None


def room_for(asks: Amounts, free: Amounts) -> int:
    """How many such pods fit; one that asks for nothing always does."""
    counts = [int((free.get(name, 0.0) + TOLERANCE) / amount) for name, amount in asks.items() if amount > 0]
    return max(0, min(counts, default=10**6))


def without(free: Free, on: Mapping[str, Amounts], *, away: Collection[str] = ()) -> Free:
    """What is free once a job is gone; machines that take no pods stay so."""
    found = {name: dict(amounts) for name, amounts in free.items()}
    for machine, amounts in on.items():
        if machine in found and machine not in away:
            for name, amount in amounts.items():
                found[machine][name] = found[machine].get(name, 0.0) + amount
    return found
