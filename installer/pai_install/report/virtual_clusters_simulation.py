"""A simulated submission: as data, as text, and the schema of the data. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, get_args

from pai_install.json_schema import closed_object, published
from pai_install.report.storages import table
from pai_install.schedulers.simulation import Outcome, Simulation
from pai_install.scheduling.model import BACKENDS, Scheduling
from pai_install.system.words import plural

SIMULATION_SCHEMA_VERSION = 2
_TEXT: dict[str, Any] = {"type": "string"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_SHOWN = 8
_HEADS: dict[Outcome, str] = {
    "fits": "fits the guarantee",
    "borrows": "would borrow idle quota",
    "preempts": "needs preemption",
    "waits": "must wait for quota",
    "never": "can never run",
    "refused": "is refused",
}
_QUOTA_HEAD = ("SKU", "REQUESTED", "GUARANTEED", "USED", "BORROWED", "IDLE", "BORROWABLE", "PREEMPTIBLE")


def simulation_data(scheduling: Scheduling, found: Simulation) -> dict[str, Any]:
    """The published form."""
    request = found.request
    return {
        "schema_version": SIMULATION_SCHEMA_VERSION,
        "scheduler": scheduling.backend,
        "job": {
            "kind": request.kind.name,
            "name": request.name,
            "namespace": request.namespace,
            "virtual_cluster": request.queue.cluster,
            "priority": request.queue.priority or None,
            "roles": [
                {"name": it.role, "pods": it.count, "asks": {key: round(it.resources[key], 3) for key in it.resources}}
                for it in request.pods
            ],
        },
        "outcome": found.outcome,
        "why": list(found.reasons),
        "quota": [asdict(it) for it in found.quotas],
        "holders": [
            {"job": it.name, "virtual_cluster": it.cluster, "priority": it.priority, "units": dict(it.units)}
            for it in found.holders
        ],
        "notes": list(found.notes),
    }


def simulation_text(found: Simulation) -> str:
    """The outcome, the quota, and the jobs that use it."""
    return "".join(f"{line}\n" for line in _lines(found))


def _lines(found: Simulation) -> Iterator[str]:
    request, queue = found.request, found.request.queue
    place = f"{queue.cluster or 'no virtual cluster'}{f', priority {queue.priority}' if queue.priority else ''}"
    name = f"{request.namespace}/{request.name}" if request.namespace else request.name
    yield f"{name} ({place}): {plural(request.pod_count, 'pod')}"
    yield _HEADS[found.outcome]
    yield from (f"  {reason}" for reason in found.reasons)
    if found.quotas:
        rows = [tuple(map(str, asdict(it).values())) for it in found.quotas]
        yield f"\n{table([_QUOTA_HEAD, *rows])}".rstrip()
    if found.holders:
        rows = [(it.cluster, it.name, _units(it.units)) for it in found.holders[:_SHOWN]]
        more = len(found.holders) - _SHOWN
        yield f"\nquota in use by\n{table(rows)}".rstrip() + (f"\n  and {more} more" if more > 0 else "")
    yield from (f"note: {note}" for note in found.notes)


def _units(units: Any) -> str:  # noqa: ANN401 - resource -> amount
    return ", ".join(f"{amount} {resource or 'cores'}" for resource, amount in units.items())


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
        namespace={**_TEXT, "description": "empty: none is named"},
        virtual_cluster={**_TEXT, "description": "empty: none is named"},
        priority={"type": ["string", "null"], "description": "null: none is named"},
        roles={"type": "array", "items": role},
    )
    quota = closed_object(
        sku=_TEXT,
        requested={**_COUNT, "description": "units: devices, or cores where a machine type has none"},
        guaranteed=_COUNT,
        used=_COUNT,
        borrowed=_COUNT,
        idle={**_COUNT, "description": "units that no job uses, of those that the virtual cluster may use"},
        borrowable={**_COUNT, "description": "units beyond the guarantee, now"},
        preemptible={**_COUNT, "description": "units of its own jobs with a lower priority"},
    )
    holder = closed_object(
        job={**_TEXT, "description": "NAMESPACE/NAME"},
        virtual_cluster=_TEXT,
        priority={"type": "integer"},
        units={"type": "object", "additionalProperties": _COUNT, "description": "resource -> units; empty: cores"},
    )
    return published(
        "pai-install vc simulate",
        SIMULATION_SCHEMA_VERSION,
        scheduler={"enum": list(BACKENDS)},
        job=job,
        outcome={
            "enum": list(get_args(Outcome)),
            "description": "preempts: others return borrowed quota, or jobs of lower priority end; refused: by the API",
        },
        why={"type": "array", "items": _TEXT, "description": "the numbers or rules behind the outcome"},
        quota={"type": "array", "items": quota, "description": "of the machine types that the job would use"},
        holders={"type": "array", "items": holder, "description": "running jobs that use this quota"},
        notes={"type": "array", "items": _TEXT},
    )
