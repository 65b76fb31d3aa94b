"""One virtual cluster of a site: as data, as text, and the schema of the data. Pure."""

from __future__ import annotations

from typing import Any

from pai_install.json_schema import published
from pai_install.report.storages import table
from pai_install.report.virtual_clusters import (
    cluster_row,
    cluster_schema,
    quota_cells,
    supply_row,
    supply_schema,
    supply_text,
)
from pai_install.scheduling.model import BACKENDS, Scheduling

VIRTUAL_CLUSTER_SCHEMA_VERSION = 1
_HEAD = ("SKU", "GUARANTEED", "LENDS", "BORROWS")


def virtual_cluster_data(scheduling: Scheduling, name: str) -> dict[str, Any]:
    """The published form. Raises KeyError for a name that no virtual cluster has."""
    row = cluster_row(scheduling, scheduling.cluster(name))
    skus = {one["sku"] for one in (*row["quota"], *row["pinned"])}
    supply = [supply_row(scheduling, one) for one in scheduling.supply.values() if one.sku in skus]
    return {"schema_version": VIRTUAL_CLUSTER_SCHEMA_VERSION, "scheduler": scheduling.backend, **row, "supply": supply}


def virtual_cluster_text(scheduling: Scheduling, name: str) -> str:
    """Returns its quota, its users, and the supply of its SKUs. Raises KeyError."""
    data = virtual_cluster_data(scheduling, name)
    pinned = ", ".join(f"{one['machine']} ({one['sku']})" for one in data["pinned"]) or "none"
    lines = [
        f"{name}: kept by {data['scheduler']}",
        f"  groups: {', '.join(data['groups']) or 'everyone'}",
        f"  namespaces: {', '.join(data['namespaces']) or 'none'}",
        f"  priorities: {data['priorities']['usual']} where a job names none, up to {data['priorities']['highest']}",
        f"  pinned machines: {pinned}",
    ]
    quota = table([_HEAD, *map(quota_cells, data["quota"])]) if data["quota"] else "guaranteed nothing beside\n"
    text = "\n".join(lines) + f"\n\n{quota}"
    return f"{text}\n{supply_text(data['supply'])}" if data["supply"] else text


def schema() -> dict[str, Any]:
    """The JSON Schema of `virtual_cluster_data`."""
    return published(
        "pai-install vc show",
        VIRTUAL_CLUSTER_SCHEMA_VERSION,
        scheduler={"enum": list(BACKENDS)},
        **cluster_schema()["properties"],
        supply={"type": "array", "items": supply_schema(), "description": "of the SKUs that it has"},
    )
