"""Virtual clusters, SKUs, and nodes in OpenPAI's API. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pai_install.kube.objects import JsonObject, child, quantities, text
from pai_install.schedulers.usage import Usage
from pai_install.scheduling.amounts import Amount, devices_of, of_units, owned
from pai_install.scheduling.model import Scheduling, Supply, VirtualCluster
from pai_install.scheduling.usage.pods import devices_in_use

Object = dict[str, Any]
_MIB = 2**20


def _resources(amounts: Iterable[tuple[Supply, Amount]]) -> Object:
    """cpu in cores, memory in MiB. The same numbers have two names in OpenPAI."""
    found = list(amounts)
    gpus = sum(amount.units for supply, amount in found if supply.resource)
    cores = sum(amount.cpu_millis for _, amount in found) // 1000
    memory = sum(amount.memory_bytes for _, amount in found) // _MIB
    return {"cpu": cores, "memory": memory, "gpu": gpus, "vCores": cores, "GPUs": gpus}


def virtual_cluster(scheduling: Scheduling, cluster: VirtualCluster, usage: Usage) -> Object:
    """One virtual cluster with its use."""
    supplies = scheduling.supply
    guaranteed = [(supply, owned(scheduling, cluster, sku)) for sku, supply in supplies.items()]
    used = [
        (supply, of_units(supply, use.units))
        for sku, supply in supplies.items()
        if (use := usage.uses.get((cluster.name, sku))) is not None
    ]
    whole, has, takes = _units(_everything(scheduling)), _units(guaranteed), _units(used)
    capacity = _percent(has, whole)
    return {
        "capacity": capacity,
        "usedCapacity": _percent(takes, has),
        "maxCapacity": 100 if any(share.borrow != 0 for share in cluster.shares) else capacity,
        "dedicated": bool(cluster.pinned),
        "status": "RUNNING",
        "numJobs": sum(job.cluster == cluster.name for job in usage.jobs),
        "resourcesUsed": _resources(used),
        "resourcesGuaranteed": _resources(guaranteed),
        "resourcesTotal": _resources(guaranteed),
        "resourcesShared": _resources(()),
    }


def _everything(scheduling: Scheduling) -> list[tuple[Supply, Amount]]:
    return [(supply, of_units(supply, supply.total)) for supply in scheduling.supply.values()]


def _units(amounts: Iterable[tuple[Supply, Amount]]) -> int:
    """Devices, or cores of a site without devices."""
    found = list(amounts)
    devices = sum(amount.units for supply, amount in found if supply.resource)
    return devices or sum(amount.units for _, amount in found)


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 0.0


def sku_types(scheduling: Scheduling, cluster: VirtualCluster | None) -> Object:
    """SKU -> one unit of it. cluster: only SKUs of a virtual cluster."""
    pinned = {scheduling.skus.get(machine) for machine in cluster.pinned} if cluster is not None else set()
    return {
        sku: {
            "gpu": 1 if supply.resource else 0,
            "cpu": max(1, supply.cpu_millis // 1000),
            "memory": supply.memory_bytes // _MIB,
        }
        for sku, supply in scheduling.supply.items()
        if cluster is None or cluster.share(sku) is not None or sku in pinned
    }


def nodes(scheduling: Scheduling, found: Iterable[JsonObject], pods: Iterable[JsonObject]) -> Object:
    """Worker -> GPUs in use and free."""
    devices = devices_of(scheduling)
    used = devices_in_use(scheduling, pods)
    rows: Mapping[str, JsonObject] = {text(child(node, "metadata").get("name")): node for node in found}
    return {
        name: _node(sum(_amounts(rows[name], devices)), used.get(name, 0)) for name in scheduling.skus if name in rows
    }


def _amounts(node: JsonObject, devices: Iterable[str]) -> list[int]:
    offered = quantities(child(node, "status").get("allocatable"))
    return [int(offered.get(name, 0)) for name in devices]


def _node(total: int, used: int) -> Object:
    return {"gpuUsed": used, "gpuAvailable": max(0, total - used), "gpuTotal": total}
