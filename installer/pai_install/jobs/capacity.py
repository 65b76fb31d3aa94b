"""Whether machines could ever hold a job, all of them idle and all that may be lent lent. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pai_install.documents.quantity import format_bytes
from pai_install.documents.validate import did_you_mean
from pai_install.profile.model import ClusterProfile
from pai_install.scheduling.amounts import held_cells
from pai_install.scheduling.model import VirtualCluster
from pai_install.scheduling.quota_rules import QuotaRules
from pai_install.site.workers import OFFERED, Workers
from pai_install.system.words import plural

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class InstanceRequest:
    """Equal instances, and what one asks for. sku: machines it has to run on; None: any."""

    role: str
    instances: int
    devices: int
    cpu_millis: int
    memory_bytes: int
    sku: str | None

    @property
    def shown(self) -> str:
        """What one asks for, in words."""
        return _amount(self.devices, self.cpu_millis, self.memory_bytes)


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why something never starts. about: resources or sku, where one instance is too much."""

    about: str
    message: str
    remedy: str


@dataclass(frozen=True)
class Capacity:
    """What a virtual cluster may use at most. cluster: None for the whole site.

    borrows: whether the job takes what others leave idle, where only those of priority oppo do. Absent machines count:
    they may come back. sku: machines of this type alone count; None: all.
    """

    profile: ClusterProfile
    cluster: VirtualCluster | None
    borrows: bool
    rules: QuotaRules
    sku: str | None = None

    def refuses_instance(self, request: InstanceRequest) -> Misfit | None:
        """Why no machine could hold one instance."""
        if request.sku is not None and request.sku not in self._all:
            message = f"{request.sku} is no machine type of this site's workers"
            return Misfit("sku", message, did_you_mean(request.sku, self._all))
        if request.sku is not None and request.sku not in self._usable:
            name = self.cluster.name if self.cluster is not None else ""
            message = f"{name} has no machines of the type {request.sku}, and may borrow none"
            return Misfit("sku", message, f"name one that it has: {', '.join(self._usable)}" if self._usable else "")
        types = self._types(request)
        if any(self._holds(one, request) for one in types):
            return None
        if not types:
            return Misfit("resources", "no machine is there for it", "see `pai-install vc list`")
        best = max(types, key=lambda one: (self._fitting(one, request), self._machine(one)))
        has = _amount(*self._machine(best))
        demand = f"one instance of {request.role} asks for {request.shown}"
        message = f"{demand}, but the largest machine type, {best.sku}, has {has}"
        counted = f": of cores and memory {OFFERED} % are for jobs" if self.rules.counts_cores else ""
        return Misfit("resources", message, f"ask for less{counted}")

    def refuses_gang(self, requests: Sequence[InstanceRequest]) -> Misfit | None:
        """Why all instances could never run together, though each could alone. With HiveD they share a machine type."""
        if not self.rules.has_cells:
            return self.refuses_sum(requests)
        named = {request.sku for request in requests if request.sku}
        if len(named) > 1:
            message = f"the instances name machines of {len(named)} types: {', '.join(sorted(named))}"
            return Misfit("", message, "name one type: with HiveD a gang is on machines of one type")
        # HiveD never divides a gang between machine types, so one type must hold all of it.
        types = sorted(named or self._usable, key=self._most, reverse=True)
        misfits = [replace(self, sku=sku).refuses_sum(requests) for sku in types]
        return None if None in misfits else next(iter(misfits), None)

    def refuses_sum(self, requests: Sequence[InstanceRequest]) -> Misfit | None:
        """The same where instances may be on machines of several types."""
        for skus in [*{(request.sku,) for request in requests if request.sku}, tuple(self._usable)]:
            inside = [request for request in requests if {one.sku for one in self._types(request)} <= set(skus)]
            held = [(one.instances, self._held(one), one.cpu_millis, one.memory_bytes) for one in inside]
            requested = _sum(held)
            there = _sum([self._most(sku) for sku in skus if sku in self._usable])
            if any(want > have for want, have in zip(requested, there, strict=True)):
                of = f" of {', '.join(skus)}" if len(skus) < len(self._all) else ""
                verb = "hold" if self.rules.has_cells else "ask for"
                sentence = f"all instances together {verb} {_amount(*requested)}"
                message = f"{sentence}, but {self._owner} has at most {_amount(*there)}{of}"
                why = (
                    " (with HiveD, each instance holds at least one device, and all have one machine type)"
                    if self.rules.has_cells
                    else ""
                )
                return Misfit("", message, f"ask for less, or for fewer instances: a gang starts as a whole{why}")
        for request in requests:
            # Sums may fit while no machine has room: two halves of machines hold no whole instance.
            room = sum(self._instances(one, request) for one in self._types(request))
            if request.instances > room:
                sentence = f"{plural(request.instances, 'instance')} of {request.role} ask for {request.shown} each"
                message = f"{sentence}, but {self._owner} has room for {room}"
                return Misfit("", message, "ask for less, or for fewer instances: a gang starts as a whole")
        return None

    @property
    def _owner(self) -> str:
        return f"the virtual cluster {self.cluster.name}" if self.cluster is not None else "the site"

    @cached_property
    def _all(self) -> dict[str, Workers]:
        return {one.sku: one for one in self.profile.workers}

    @cached_property
    def _usable(self) -> dict[str, Workers]:
        """SKUs of which the virtual cluster may have any."""
        return {sku: one for sku, one in self._all.items() if self.sku in (None, sku) and self._units(one) > 0}

    def _types(self, request: InstanceRequest) -> list[Workers]:
        """Machine types that may hold an instance, if they are large enough."""
        return [one for sku, one in self._usable.items() if request.sku in (None, sku)]

    def _units(self, workers: Workers) -> int:
        """The most units of an SKU that the virtual cluster may use."""
        scheduling, cluster = self.profile.scheduling, self.cluster
        if scheduling is None or cluster is None:
            return workers.units * len(workers.names)
        own = workers.units * sum(name in cluster.pinned for name in workers.names)
        free = workers.units * sum(name not in scheduling.pinned for name in workers.names)
        share = cluster.share(workers.sku)
        if self.rules.lends_to_oppo and self.borrows:
            return own + free
        if share is None:
            return own
        kept = sum(
            other.units - other.lend
            for one in scheduling.clusters
            if one is not cluster and (other := one.share(workers.sku)) is not None
        )
        lent = share.borrow if self.rules.has_limits else 0
        most = share.units + lent if lent is not None else free
        return own + max(min(most, free - kept), min(share.units, free))

    def _most(self, sku: str) -> tuple[int, int, int, int]:
        """Instances (without limit), devices, cores and memory."""
        workers = self._all[sku]
        units = self._units(workers)
        share = self.cluster.share(sku) if self.cluster is not None else None
        if not self.rules.counts_cores:  # devices are what is counted
            machines = [self._machine(workers)] * len(workers.names)
            _, cores, memory = (sum(column) for column in zip(*machines, strict=True))
            return 0, units if workers.resource or self.rules.has_cells else 0, cores, memory
        memory = units * workers.memory_bytes
        if share is not None and not workers.resource:  # memory of cores may be asked for apart
            memory = max(memory, share.memory_bytes)
        return 0, units if workers.resource else 0, units * workers.cpu_millis, memory

    def _instances(self, workers: Workers, request: InstanceRequest) -> int:
        """How many instances the machines of an SKU hold, each as a whole on one of them."""
        if not self._holds(workers, request):
            return 0
        requested = (request.devices, request.cpu_millis, request.memory_bytes)
        each = [have // want for have, want in zip(self._machine(workers), requested, strict=True) if want]
        pinned = self.profile.scheduling.pinned if self.profile.scheduling is not None else {}
        own = self.cluster.name if self.cluster is not None else ""
        # A machine that is pinned to another virtual cluster runs none of these instances.
        machines = sum(pinned.get(name, own) == own for name in workers.names)
        return min([*each, request.instances]) * machines

    def _held(self, request: InstanceRequest) -> int:
        """Devices of one instance, or the fewest cells that it can hold."""
        if not self.rules.has_cells:
            return request.devices
        requested = request.devices, request.cpu_millis, request.memory_bytes
        return min(held_cells(*requested, (one.cpu_millis, one.memory_bytes)) for one in self._types(request))

    def _machine(self, workers: Workers) -> tuple[int, int, int]:
        """Devices, cores and memory of one machine that jobs may have."""
        devices = workers.units if workers.resource else 0
        if self.rules.counts_cores:
            return devices, workers.units * workers.cpu_millis, workers.units * workers.memory_bytes
        return devices, workers.machine_millis, workers.machine_bytes

    def _fitting(self, workers: Workers, request: InstanceRequest) -> int:
        """How many of devices, cores and memory are enough on an idle machine."""
        requested = (request.devices, request.cpu_millis, request.memory_bytes)
        return sum(want <= have for want, have in zip(requested, self._machine(workers), strict=True))

    def _holds(self, workers: Workers, request: InstanceRequest) -> bool:
        """Whether an idle machine holds one instance."""
        return self._fitting(workers, request) == len(self._machine(workers))


def _amount(devices: int, cpu_millis: int, memory_bytes: int) -> str:
    return f"{plural(devices, 'device')}, {cpu_millis / 1000:g} cores and {format_bytes(memory_bytes // _MIB * _MIB)}"


def _sum(parts: Sequence[tuple[int, int, int, int]]) -> tuple[int, int, int]:
    """Devices, cores and memory of so many instances each; 0 instances are a sum already."""
    return (
        sum((count or 1) * devices for count, devices, _, _ in parts),
        sum((count or 1) * cores for count, _, cores, _ in parts),
        sum((count or 1) * memory for count, _, _, memory in parts),
    )
