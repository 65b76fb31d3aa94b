"""Amounts that pods ask for, in units of an SKU. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pai_install.kube.objects import JsonObject, child, quantities, rows
from pai_install.scheduling.amounts import CPU, devices_of
from pai_install.scheduling.model import Scheduling, Supply, VirtualCluster
from pai_install.scheduling.usage.model import Use

# a sum of thousandths is not exact
_TOLERANCE = 1e-6


def resource_of(supply: Supply) -> str:
    """What a unit of the SKU is called by Kubernetes."""
    return supply.resource or CPU


def units_of(supply: Supply, amount: float) -> int:
    """An amount of the SKU's resource in units; a unit that is begun is used."""
    per_unit = 1.0 if supply.resource else max(supply.cpu_millis, 1) / 1000
    return max(0, math.ceil(amount / per_unit - _TOLERANCE))


def asked_by_pod(spec: JsonObject) -> Mapping[str, float]:
    """Resource -> what the containers ask for together; a limit stands for a request that is not given."""
    total: dict[str, float] = {}
    for container in rows(spec.get("containers")):
        resources = child(container, "resources")
        for name, amount in {**quantities(resources.get("limits")), **quantities(resources.get("requests"))}.items():
            total[name] = total.get(name, 0.0) + amount
    return total


def words_of(scheduling: Scheduling, asked: Mapping[str, float]) -> Mapping[str, int]:
    """What a job asks for that has no machine yet: devices by resource, else cores as ""."""
    devices = {name: math.ceil(asked[name]) for name in devices_of(scheduling) if asked.get(name)}
    cores = math.ceil(asked.get(CPU, 0.0) - _TOLERANCE)
    return devices or ({"": cores} if cores > 0 else {})


def use_of(cluster: VirtualCluster, sku: str, shared: int, own: int) -> Use:
    """A use, with what is beyond the guarantee as borrowed."""
    share = cluster.share(sku)
    return Use(cluster.name, sku, shared + own, own, max(0, shared - (share.units if share is not None else 0)))
