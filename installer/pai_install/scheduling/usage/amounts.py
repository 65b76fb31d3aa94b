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
    """Returns Kubernetes' resource of the SKU's unit."""
    return supply.resource or CPU


def units_of(supply: Supply, amount: float) -> int:
    """Returns an amount of the SKU's resource in units, rounded up."""
    per_unit = 1.0 if supply.resource else max(supply.cpu_millis, 1) / 1000
    return max(0, math.ceil(amount / per_unit - _TOLERANCE))


def requests_of_pod(spec: JsonObject) -> Mapping[str, float]:
    """Returns resource -> sum of the containers' requests. A limit replaces a missing request."""
    total: dict[str, float] = {}
    for container in rows(spec.get("containers")):
        resources = child(container, "resources")
        for name, amount in {**quantities(resources.get("limits")), **quantities(resources.get("requests"))}.items():
            total[name] = total.get(name, 0.0) + amount
    return total


def words_of(scheduling: Scheduling, requested: Mapping[str, float]) -> Mapping[str, int]:
    """Returns the request of a job without a machine: devices by resource, or cores as ""."""
    devices = {name: math.ceil(requested[name]) for name in devices_of(scheduling) if requested.get(name)}
    cores = math.ceil(requested.get(CPU, 0.0) - _TOLERANCE)
    return devices or ({"": cores} if cores > 0 else {})


def use_of(cluster: VirtualCluster, sku: str, shared: int, own: int) -> Use:
    """Returns a use, with the part beyond the guarantee as borrowed."""
    share = cluster.share(sku)
    return Use(cluster.name, sku, shared + own, own, max(0, shared - (share.units if share is not None else 0)))
