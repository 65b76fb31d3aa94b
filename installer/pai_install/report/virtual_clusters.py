"""The virtual clusters of a site, and which guarantees cannot be met now: data, text, and the data's schema. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pai_install.json_schema import closed_object, published
from pai_install.report.storages import table
from pai_install.report.virtual_clusters_unmet import unmet_data, unmet_schema, unmet_text
from pai_install.scheduling.model import BACKENDS, PRIORITIES, Scheduling, Share, Supply, VirtualCluster
from pai_install.scheduling.usage.health import Unmet

VIRTUAL_CLUSTERS_SCHEMA_VERSION = 1
NONE = "this site has no virtual clusters: sections scheduler and virtual-clusters of services-configuration.yaml\n"
_HEAD = ("NAME", "SKU", "GUARANTEED", "LENDS", "BORROWS", "PINNED", "GROUPS", "PRIORITIES")
_SUPPLY_HEAD = ("SKU", "MACHINES", "TOTAL", "PINNED", "GUARANTEED", "UNASSIGNED")

_TEXT: dict[str, Any] = {"type": "string"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_LIVE: dict[str, Any] = {"type": ["integer", "null"], "minimum": 0, "description": "units; null: not asked"}
_RESOURCE: dict[str, Any] = {**_TEXT, "description": "of the devices; empty: a unit is a core"}


def virtual_clusters_data(
    scheduling: Scheduling | None,
    remarks: Sequence[str] = (),
    not_kept: Sequence[str] = (),
    unmet: Sequence[Unmet] | None = None,
) -> dict[str, Any]:
    """Returns the published form. remarks: the cells that HiveD's block guarantees. not_kept: rules that the scheduler
    does not keep.

    unmet: guarantees that cannot be met now, None if the cluster was not queried.
    """
    return {
        "schema_version": VIRTUAL_CLUSTERS_SCHEMA_VERSION,
        "scheduler": scheduling.backend if scheduling else None,
        "topology": [{"name": one.name, "label": one.label} for one in scheduling.levels] if scheduling else [],
        "supply": [supply_row(scheduling, one) for one in scheduling.supply.values()] if scheduling else [],
        "virtual_clusters": [cluster_row(scheduling, one) for one in scheduling.clusters] if scheduling else [],
        "remarks": list(remarks),
        "not_kept": list(not_kept),
        "unmet": None if unmet is None else unmet_data(unmet),
    }


def supply_row(scheduling: Scheduling, supply: Supply) -> dict[str, Any]:
    """Returns the capacity of an SKU's present machines, and its guaranteed share."""
    free = scheduling.free(supply.sku)
    guaranteed = sum(share.units for one in scheduling.clusters if (share := one.share(supply.sku)))
    return {
        "sku": supply.sku,
        "resource": supply.resource,
        "machines": len(supply.machines),
        "units": supply.total,
        "pinned": supply.total - free,
        "guaranteed": guaranteed,
        "unassigned": max(0, free - guaranteed),
        "missing": max(0, guaranteed - free),
    }


def cluster_row(scheduling: Scheduling, cluster: VirtualCluster) -> dict[str, Any]:
    """A virtual cluster."""
    return {
        "name": cluster.name,
        "quota": [_quota(scheduling.supply[share.sku], share) for share in cluster.shares],
        "pinned": [{"machine": name, "sku": scheduling.skus[name]} for name in cluster.pinned],
        "groups": list(cluster.groups),
        "namespaces": list(cluster.namespaces),
        "priorities": {"usual": cluster.usual, "highest": cluster.highest},
    }


def _quota(supply: Supply, share: Share) -> dict[str, Any]:
    """used, lent and borrowed are not known from the files."""
    return {
        "sku": share.sku,
        "resource": supply.resource,
        "machines": share.machines,
        "guaranteed": share.units,
        "memory_bytes": share.memory_bytes,
        "lend": share.lend,
        "borrow": share.borrow,
        "used": None,
        "lent": None,
        "borrowed": None,
    }


def virtual_clusters_text(
    scheduling: Scheduling | None,
    remarks: Sequence[str] = (),
    not_kept: Sequence[str] = (),
    unmet: Sequence[Unmet] | None = None,
) -> str:
    """Returns a table of the virtual clusters and one of the supply, then exceptions from them."""
    data = virtual_clusters_data(scheduling, remarks)
    if scheduling is None:
        return NONE
    rows = [cells for row in data["virtual_clusters"] for cells in _cells(row)]
    text = f"kept by {data['scheduler']}\n\n{table([_HEAD, *rows])}\n{supply_text(data['supply'])}"
    kept = _listed(f"{data['scheduler']} does not keep or count:", not_kept)
    return text + unmet_text(unmet or ()) + remarks_text(remarks) + kept


def _cells(row: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """A line for each SKU that it has, the first with its name."""
    pinned = ", ".join(one["machine"] for one in row["pinned"]) or "none"
    groups = ", ".join(row["groups"]) or "everyone"
    priority = f"{row['priorities']['usual']} to {row['priorities']['highest']}"
    first, last = (row["name"],), (pinned, groups, priority)
    for quota in row["quota"]:
        yield (*first, *quota_cells(quota), *last)
        first, last = ("",), ("", "", "")
    if not row["quota"]:
        yield (*first, "none", "", "", "", *last)


def quota_cells(quota: dict[str, Any]) -> tuple[str, str, str, str]:
    """Returns SKU, guarantee, lending limit, and borrowing limit as text."""
    amount = _amount(quota["guaranteed"], quota["resource"])
    machines = quota["machines"]
    if machines:
        amount = f"{machines} {'machine' if machines == 1 else 'machines'} ({amount})"
    lends = "all" if quota["lend"] == quota["guaranteed"] else str(quota["lend"] or "none")
    borrows = "all" if quota["borrow"] is None else str(quota["borrow"] or "none")
    return quota["sku"], amount, lends, borrows


def _amount(units: int, resource: str) -> str:
    word = "device" if resource else "core"
    return f"{units} {word if units == 1 else word + 's'}"


def supply_text(rows: Sequence[dict[str, Any]]) -> str:
    """Returns a table of the machines' capacity."""
    return table([_SUPPLY_HEAD, *map(_supply_cells, rows)])


def _supply_cells(row: dict[str, Any]) -> tuple[str, ...]:
    rest = f"{row['missing']} missing" if row["missing"] else str(row["unassigned"])
    total = _amount(row["units"], row["resource"])
    return row["sku"], str(row["machines"]), total, str(row["pinned"]), str(row["guaranteed"]), rest


def remarks_text(remarks: Sequence[str]) -> str:
    """Returns the cells of HiveD's block as text."""
    return _listed("cells of HiveD's block:", remarks)


def _listed(head: str, sentences: Sequence[str]) -> str:
    lines = ("", head, *(f"  {one}" for one in sentences)) if sentences else ()
    return "".join(f"{line}\n" for line in lines)


def schema() -> dict[str, Any]:
    """The JSON Schema of `virtual_clusters_data`."""
    level = closed_object(name=_TEXT, label=_TEXT)
    return published(
        "pai-install vc list",
        VIRTUAL_CLUSTERS_SCHEMA_VERSION,
        scheduler={"enum": [*BACKENDS, None], "description": "null: the site has no virtual clusters"},
        topology={"type": "array", "items": level, "description": "above the machine, the widest first"},
        supply={"type": "array", "items": supply_schema()},
        virtual_clusters={"type": "array", "items": cluster_schema()},
        remarks={"type": "array", "items": _TEXT, "description": "the cells that HiveD's block guarantees"},
        not_kept={"type": "array", "items": _TEXT, "description": "what the scheduler does not keep, in words"},
        unmet={"anyOf": [unmet_schema(), {"type": "null"}], "description": "null: the cluster was not asked"},
    )


def supply_schema() -> dict[str, Any]:
    """Of `supply_row`."""
    return closed_object(
        sku=_TEXT,
        resource=_RESOURCE,
        machines={**_COUNT, "description": "present workers"},
        units={**_COUNT, "description": "devices or cores of these"},
        pinned={**_COUNT, "description": "units of pinned machines"},
        guaranteed={**_COUNT, "description": "units, those of pinned machines not counted"},
        unassigned={**_COUNT, "description": "units that are guaranteed to no one"},
        missing={**_COUNT, "description": "units that are guaranteed while machines that have them are absent"},
    )


def cluster_schema() -> dict[str, Any]:
    """Of `cluster_row`."""
    quota = closed_object(
        sku=_TEXT,
        resource=_RESOURCE,
        machines={**_COUNT, "description": "whole machines that were asked for; 0: units were"},
        guaranteed={**_COUNT, "description": "units"},
        memory_bytes=_COUNT,
        lend={**_COUNT, "description": "units that others may use while they are idle"},
        borrow={"type": ["integer", "null"], "minimum": 0, "description": "units beyond it; null: whatever is idle"},
        used=_LIVE,
        lent=_LIVE,
        borrowed=_LIVE,
    )
    priority: dict[str, Any] = {"enum": list(PRIORITIES)}
    return closed_object(
        name=_TEXT,
        quota={"type": "array", "items": quota},
        pinned={"type": "array", "items": closed_object(machine=_TEXT, sku=_TEXT)},
        groups={"type": "array", "items": _TEXT, "description": "who may submit; empty: the site has no groups"},
        namespaces={"type": "array", "items": _TEXT},
        priorities=closed_object(usual=priority, highest=priority),
    )
