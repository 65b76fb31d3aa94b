"""The current usage of the virtual clusters by jobs, as data, as text, and as the schema of the data. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pai_install.json_schema import closed_object, published
from pai_install.report.storages import table
from pai_install.report.virtual_clusters_unmet import unmet_data, unmet_schema, unmet_text
from pai_install.schedulers.usage import Usage
from pai_install.scheduling.amounts import owned
from pai_install.scheduling.model import BACKENDS, Scheduling, VirtualCluster
from pai_install.scheduling.usage.health import Unmet
from pai_install.scheduling.usage.model import Use
from pai_install.system.words import plural

USAGE_SCHEMA_VERSION = 1
_HEAD = ("NAME", "SKU", "GUARANTEED", "USED", "LENT", "BORROWED", "WAITING")
_SUPPLY_HEAD = ("SKU", "TOTAL", "USED", "UNASSIGNED")
_TEXT: dict[str, Any] = {"type": "string"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}


def usage_data(scheduling: Scheduling, usage: Usage, name: str = "") -> dict[str, Any]:
    """Returns the published form. name: of a single virtual cluster. Empty: all."""
    clusters = [one for one in scheduling.clusters if name in ("", one.name)]
    rows = [_cluster(scheduling, usage, one) for one in clusters]
    skus = [quota["sku"] for row in rows for quota in row["quota"]] if name else list(scheduling.supply)
    return {
        "schema_version": USAGE_SCHEMA_VERSION,
        "scheduler": scheduling.backend,
        "supply": [_supply(scheduling, usage, sku) for sku in scheduling.supply if sku in skus],
        "virtual_clusters": rows,
        "unmet": unmet_data(_unmet(usage, name)),
    }


def _unmet(usage: Usage, name: str) -> list[Unmet]:
    return [one for one in usage.unmet if not name or name in one.clusters]


def _supply(scheduling: Scheduling, usage: Usage, sku: str) -> dict[str, Any]:
    known = not usage.unknown
    given = sum(share.units for one in scheduling.clusters if (share := one.share(sku)))
    return {
        "sku": sku,
        "resource": scheduling.supply[sku].resource,
        "units": scheduling.supply[sku].total,
        "used": sum(use.units for use in usage.uses.values() if use.sku == sku) if known else None,
        "unassigned": max(0, scheduling.free(sku) - given),
    }


def _cluster(scheduling: Scheduling, usage: Usage, cluster: VirtualCluster) -> dict[str, Any]:
    jobs = [job for job in usage.jobs if job.cluster == cluster.name]
    waiting = [job for job in jobs if job.waits]
    resources = dict.fromkeys(resource for job in waiting for resource in job.units)
    known = cluster.name not in usage.unknown
    units = [{"resource": it, "units": sum(job.units.get(it, 0) for job in waiting)} for it in resources]
    return {
        "name": cluster.name,
        "quota": list(_quotas(scheduling, usage, cluster, known=known)),
        "running": len(jobs) - len(waiting) if known else None,
        "waiting": {"jobs": len(waiting), "units": units} if known else None,
    }


def _quotas(scheduling: Scheduling, usage: Usage, cluster: VirtualCluster, *, known: bool) -> Iterator[dict[str, Any]]:
    for sku, supply in scheduling.supply.items():
        guaranteed = owned(scheduling, cluster, sku).units
        use = usage.uses.get((cluster.name, sku), Use(cluster.name, sku, 0))
        if guaranteed or use.units or cluster.share(sku) is not None:
            yield {
                "sku": sku,
                "resource": supply.resource,
                "guaranteed": guaranteed,
                "used": use.units if known else None,
                "lent": usage.lent.get((cluster.name, sku), 0) if known else None,
                "borrowed": use.borrowed if known else None,
            }


def usage_text(scheduling: Scheduling, usage: Usage, name: str = "") -> str:
    """Returns a table of the virtual clusters, one of the supply, and the guarantees that cannot be met now."""
    data = usage_data(scheduling, usage, name)
    rows = [cells for row in data["virtual_clusters"] for cells in _cells(row)]
    supply = [tuple(map(_word, (one["sku"], *_amounts(one)))) for one in data["supply"]]
    text = f"kept by {data['scheduler']}\n\n{table([_HEAD, *rows])}"
    text += f"\n{table([_SUPPLY_HEAD, *supply])}" if supply else ""
    text += unmet_text(_unmet(usage, name))
    hidden = sorted(usage.unknown & {row["name"] for row in data["virtual_clusters"]})
    if hidden:
        text += f"\nnot known for {', '.join(hidden)}: they share namespaces, and their pods name no virtual cluster\n"
    return text


def _amounts(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["units"], row["used"], row["unassigned"]


def _cells(row: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yields a line for each SKU. The first line has its name and its pending jobs, which have no SKU yet."""
    name, waits = row["name"], _waits(row["waiting"])
    for quota in row["quota"]:
        numbers = (quota[key] for key in ("guaranteed", "used", "lent", "borrowed"))
        yield (name, quota["sku"], *map(_word, numbers), waits)
        name, waits = "", ""
    if not row["quota"]:
        yield (name, "none", "", "", "", "", waits)


def _word(value: object) -> str:
    return "?" if value is None else str(value)


def _waits(waiting: dict[str, Any] | None) -> str:
    if waiting is None:
        return "?"
    units = ", ".join(f"{one['units']} {one['resource'] or 'cores'}" for one in waiting["units"])
    return plural(waiting["jobs"], "job") + (f" for {units}" if units else "") if waiting["jobs"] else "none"


def schema() -> dict[str, Any]:
    """The JSON Schema of `usage_data`."""
    unsaid: dict[str, Any] = {"type": ["integer", "null"], "minimum": 0}
    live = {**unsaid, "description": "units; null: not known"}
    resource = {**_TEXT, "description": "of the devices; empty: a unit is a core"}
    quota = closed_object(
        sku=_TEXT,
        resource=resource,
        guaranteed={**_COUNT, "description": "units, with those of machines of its own"},
        used=live,
        lent={**live, "description": "units of its idle guarantee that others use; null: not known"},
        borrowed={**live, "description": "units of `used` beyond its guarantee; null: not known"},
    )
    units = closed_object(resource={**_TEXT, "description": "what is asked for; empty: cores"}, units=_COUNT)
    waiting = closed_object(jobs=_COUNT, units={"type": "array", "items": units})
    cluster = closed_object(
        name=_TEXT,
        quota={"type": "array", "items": quota},
        running={**unsaid, "description": "jobs; null: not known"},
        waiting={"anyOf": [waiting, {"type": "null"}], "description": "jobs that have nothing yet; null: not known"},
    )
    supply = closed_object(
        sku=_TEXT,
        resource=resource,
        units={**_COUNT, "description": "of present workers"},
        used=live,
        unassigned={**_COUNT, "description": "units that are guaranteed to no one"},
    )
    return published(
        "pai-install vc usage",
        USAGE_SCHEMA_VERSION,
        scheduler={"enum": list(BACKENDS)},
        supply={"type": "array", "items": supply},
        virtual_clusters={"type": "array", "items": cluster},
        unmet=unmet_schema(),
    )
