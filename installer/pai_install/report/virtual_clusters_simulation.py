"""Where a job would go, or what keeps it: as data, as text, and the schema of the data. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, get_args

from pai_install.json_schema import closed_object, published
from pai_install.schedulers.simulate.model import Amounts, Forecast, NewJob, Outcome
from pai_install.schedulers.simulate.words import amount_of, total_of
from pai_install.scheduling.model import BACKENDS, Scheduling
from pai_install.system.words import plural

SIMULATION_SCHEMA_VERSION = 1
_TEXT: dict[str, Any] = {"type": "string"}
_SHOWN = 8


def simulation_data(scheduling: Scheduling, gang: NewJob, verdict: Forecast) -> dict[str, Any]:
    """The published form."""
    return {
        "schema_version": SIMULATION_SCHEMA_VERSION,
        "scheduler": scheduling.backend,
        "job": {
            "kind": gang.kind,
            "name": gang.name,
            "namespace": gang.namespace,
            "virtual_cluster": gang.cluster,
            "priority": gang.priority or None,
            "roles": [{"name": it.name, "pods": it.count, "asks": _amounts(it.asks)} for it in gang.roles],
        },
        "outcome": verdict.outcome,
        "why": list(verdict.why),
        "placed": [{"role": it.role, "machine": it.machine, "pods": it.pods} for it in verdict.placed],
        "evicted": [
            {"job": it.job, "virtual_cluster": it.cluster, "gives": _amounts(it.units), "why": it.why}
            for it in verdict.victims
        ],
        "notes": list(verdict.notes),
    }


def _amounts(amounts: Amounts) -> dict[str, float]:
    return {name: round(amount, 3) for name, amount in amounts.items()}


def simulation_text(gang: NewJob, verdict: Forecast) -> str:
    """The verdict in a sentence, then where, what goes, and why."""
    return "".join(f"{line}\n" for line in _lines(gang, verdict))


def _lines(gang: NewJob, verdict: Forecast) -> Iterator[str]:
    priority = f", priority {gang.priority}" if gang.priority else ""
    place = f"{gang.cluster}{priority}" if gang.cluster else "no virtual cluster"
    name = f"{gang.namespace}/{gang.name}" if gang.namespace else gang.name
    yield f"{name} ({place}): {plural(gang.pods, 'pod')}, together {total_of(gang.asks)}"
    yield f"{_HEADS[verdict.outcome]}{_end(verdict)}"
    yield from (f"  {why}" for why in verdict.why)
    for victim in verdict.victims:
        devices = {key: amount for key, amount in victim.units.items() if key not in {"cpu", "memory"}}
        back = total_of(devices or victim.units)
        yield f"  evicted: {victim.job} of {victim.cluster} gives back {back}: {victim.why}"
    yield from _where(gang, verdict)
    yield from (f"note: {note}" for note in verdict.notes)


_HEADS: dict[Outcome, str] = {
    "starts": "would start now",
    "takes-back": "would start now, after taking back what others use",
    "waits": "waits",
    "never": "never starts",
    "refused": "is refused",
}


def _end(verdict: Forecast) -> str:
    if verdict.outcome == "takes-back":
        return f" ({plural(len(verdict.victims), 'job')})"
    return ":" if verdict.why else ""


def _where(gang: NewJob, verdict: Forecast) -> Iterator[str]:
    machines: defaultdict[str, list[str]] = defaultdict(list)
    for row in verdict.placed:
        machines[row.role].append(f"{row.machine} x{row.pods}" if row.pods > 1 else row.machine)
    for role in gang.roles:
        if found := machines.get(role.name):
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            each = ", ".join(amount_of(name, amount) for name, amount in role.asks.items()) or "nothing"
            what = f"{plural(role.count, 'pod')} with {each}{' each' if role.count > 1 else ''}"
            yield f"  {role.name}: {what}, on {', '.join(found[:_SHOWN])}{more}"


def schema() -> dict[str, Any]:
    """The JSON Schema of `simulation_data`."""
    amounts: dict[str, Any] = {
        "type": "object",
        "additionalProperties": {"type": "number", "minimum": 0},
        "description": "resource -> amount, in cores, bytes and devices",
    }
    role = closed_object(name=_TEXT, pods={"type": "integer", "minimum": 1}, asks=amounts)
    job = closed_object(
        kind=_TEXT,
        name=_TEXT,
        namespace={**_TEXT, "description": "empty: it names none, and nothing says which"},
        virtual_cluster={**_TEXT, "description": "empty: it names none, and nothing says which"},
        priority={"type": ["string", "null"], "description": "null: it has none by name"},
        roles={"type": "array", "items": role},
    )
    placed = closed_object(role=_TEXT, machine=_TEXT, pods={"type": "integer", "minimum": 1})
    evicted = closed_object(
        job={**_TEXT, "description": "NAMESPACE/NAME"}, virtual_cluster=_TEXT, gives=amounts, why=_TEXT
    )
    return published(
        "pai-install vc simulate",
        SIMULATION_SCHEMA_VERSION,
        scheduler={"enum": list(BACKENDS)},
        job=job,
        outcome={
            "enum": list(get_args(Outcome)),
            "description": "takes-back: starts once `evicted` are gone; refused: by the API server",
        },
        why={"type": "array", "items": _TEXT, "description": "the rules that decide, in words"},
        placed={"type": "array", "items": placed},
        evicted={"type": "array", "items": evicted},
        notes={"type": "array", "items": _TEXT},
    )
