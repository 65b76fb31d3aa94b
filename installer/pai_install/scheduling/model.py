"""Virtual clusters as values, for any scheduler.

The unit of a quota is one device, or one core for an SKU without devices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from pai_install.site.services.virtual_clusters import TYPES, SchedulerType

# the name of a scheduler back end, as sites write it
Backend = SchedulerType
Priority = Literal["crit", "prod", "test", "oppo"]

BACKENDS: tuple[Backend, ...] = TYPES
# OpenPAI's, the highest first; what its web portal calls them, and the number that HiveD is given
PRIORITIES: Mapping[Priority, int] = {"crit": 120, "prod": 100, "test": 10, "oppo": -1}
LOWEST: Priority = "oppo"
# the node label that says which SKU of the layout a machine is
SKU_LABEL = "pai-install/sku"
# the level of topology that every site has: the machine itself
HOST_LABEL = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Level:
    """A level of topology above the machine. label: the node label with a machine's place."""

    name: str
    label: str


@dataclass(frozen=True, slots=True)
class Supply:
    """The capacity of one SKU's machines for jobs.

    machines: names of present workers, in the order of the layout. resource: of its devices, such as nvidia.com/gpu, or
    "". units: on one machine. cpu_millis, memory_bytes: share of one unit.
    """

    sku: str
    machines: tuple[str, ...]
    resource: str
    units: int
    cpu_millis: int
    memory_bytes: int

    @property
    def total(self) -> int:
        """Units of all machines."""
        return self.units * len(self.machines)


@dataclass(frozen=True, slots=True)
class Share:
    """A virtual cluster's guarantee of one SKU, without machines pinned to it.

    machines: number of whole ones in the request, 0 for units. memory_bytes: all of it. lend: units that others may use
    while idle. borrow: units beyond the guarantee, None: all idle units.
    """

    sku: str
    units: int
    memory_bytes: int
    lend: int
    borrow: int | None
    machines: int = 0


@dataclass(frozen=True, slots=True)
class VirtualCluster:
    """The guarantees and users of a virtual cluster.

    pinned: its own machines, which are never lent. groups: with permission to submit. namespaces: of the groups, in the
    same order. highest: the highest permitted priority of its jobs. usual: the default priority.
    pods_per_job: the greatest number of pods of a job, None without a limit of its own.
    """

    name: str
    shares: tuple[Share, ...]
    pinned: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    highest: Priority = "crit"
    usual: Priority = "test"
    pods_per_job: int | None = None

    def share(self, sku: str) -> Share | None:
        """Its share of an SKU, None where it has none but by pinned machines."""
        return next((share for share in self.shares if share.sku == sku), None)


@dataclass(frozen=True, slots=True)
class UnqueuedLimit:
    """The most that pods of a group outside queues may request, all together."""

    cores: int
    memory_bytes: int


@dataclass(frozen=True)
class Scheduling:
    """How a site divides its workers. levels: of topology, the widest first, the machine itself left out.

    block: OpenPAI's configuration of HiveD, where the site has it. SKUs then have the names of the block.
    unqueued: of each group, None without a limit. device_share: the most that pods request per device, in percent of
    its share of cores and memory. None without a setting, 0 without a limit.
    """

    backend: Backend
    supply: Mapping[str, Supply]
    clusters: tuple[VirtualCluster, ...]
    levels: tuple[Level, ...] = ()
    block: Mapping[str, Any] | None = None
    unqueued: UnqueuedLimit | None = None
    device_share: int | None = None

    @cached_property
    def pinned(self) -> Mapping[str, str]:
        """Returns machine -> the virtual cluster that it is pinned to."""
        return {machine: cluster.name for cluster in self.clusters for machine in cluster.pinned}

    def cluster(self, name: str) -> VirtualCluster:
        """The virtual cluster called `name`. Raises KeyError."""
        for cluster in self.clusters:
            if cluster.name == name:
                return cluster
        raise KeyError(name)

    @cached_property
    def skus(self) -> Mapping[str, str]:
        """Returns worker -> its SKU, the first one for a worker with cells of two SKUs."""
        found: dict[str, str] = {}
        for sku, supply in self.supply.items():
            for machine in supply.machines:
                found.setdefault(machine, sku)
        return found

    def free(self, sku: str) -> int:
        """Units of an SKU on machines that are pinned to no virtual cluster."""
        supply = self.supply[sku]
        return supply.units * sum(machine not in self.pinned for machine in supply.machines)
