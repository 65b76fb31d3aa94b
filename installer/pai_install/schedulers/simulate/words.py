"""Amounts and reasons in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pai_install.schedulers.simulate.manifest import CELLS
from pai_install.schedulers.simulate.model import Amounts, MachineNow, NewJob
from pai_install.schedulers.simulate.place import TOLERANCE, room_for, takes
from pai_install.scheduling.amounts import CPU, MEMORY, memory

_SHOWN = 6


def amount_of(resource: str, amount: float) -> str:
    """E.g. "8 nvidia.com/gpu", "1.5 cores", "64Gi memory"."""
    if resource == MEMORY:
        return f"{memory(int(amount))} memory"
    number, word = number_of(resource, amount), {CPU: "core", CELLS: "device"}.get(resource)
    return f"{number} {resource if word is None else word if number == '1' else f'{word}s'}"


def number_of(resource: str, amount: float) -> str:
    """The amount without the name of what it is of."""
    return memory(int(amount)) if resource == MEMORY else f"{amount:.3f}".rstrip("0").rstrip(".")


def total_of(asks: Amounts) -> str:
    """All that is asked for."""
    return ", ".join(amount_of(name, amount) for name, amount in asks.items()) or "nothing"


def too_large(gang: NewJob, machines: Sequence[MachineNow]) -> tuple[str, ...]:
    """A sentence for each role of which no machine takes a pod, even if nothing else ran."""
    return tuple(sentence for role in gang.roles if (sentence := _of_role(gang, role.name, machines)))


def _of_role(gang: NewJob, name: str, machines: Sequence[MachineNow]) -> str:
    role = next(it for it in gang.roles if it.name == name)
    allowed = [it for it in machines if takes(it, role)]
    if not allowed:
        return f"{name}: no machine that it may use has the labels, or tolerates what it asks for by selector and taint"
    if any(room_for(role.asks, it.whole) for it in allowed):
        return ""
    for resource, amount in role.asks.items():
        largest = max(it.whole.get(resource, 0.0) for it in allowed)
        if amount > largest + TOLERANCE:
            has = f"the largest machine has {amount_of(resource, largest)}" if largest else "no machine has any"
            return f"{name}: asks for {amount_of(resource, amount)} per pod, {has}"
    return f"{name}: no one machine has {total_of(role.asks)} together"


def no_room(gang: NewJob, machines: Sequence[MachineNow]) -> str:
    """Where devices are free, and that these are too few or in too many pieces."""
    resources = [name for name in gang.asks if name not in (CPU, MEMORY)] or [CPU]
    wanted = "; ".join(f"{role.count} x {total_of(role.asks)}" for role in gang.roles)
    free = [
        f"{it.name} {' and '.join(amount_of(name, it.free.get(name, 0.0)) for name in resources)}"
        for it in machines
        if not it.away and any(it.free.get(name, 0.0) > TOLERANCE for name in resources)
    ]
    more = f" and {len(free) - _SHOWN} more" if len(free) > _SHOWN else ""
    return (
        f"the machines have no room for all of it at once ({wanted}); free: {', '.join(free[:_SHOWN]) or 'none'}{more}"
    )


def away_of(machines: Iterable[MachineNow]) -> tuple[str, ...]:
    """Machines that take no pods now, and why."""
    return tuple(f"{it.name} {it.away}" for it in machines if it.away)
