"""Rules of virtual-clusters[].quota: SKUs that are there, amounts that make sense, and not more than there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from pai_install.documents.problem import YamlPath
from pai_install.documents.quantity import format_bytes
from pai_install.documents.validate import did_you_mean
from pai_install.site.model import Site
from pai_install.site.rules.problems import Wrong
from pai_install.site.services.virtual_clusters import Portion, QuotaEntry, Scheduler, VirtualClusterEntry
from pai_install.site.workers import Workers, workers_of
from pai_install.system.words import plural

_AMOUNTS = ("machines", "devices", "cores")


def of_quotas(site: Site, scheduler: Scheduler, clusters: tuple[VirtualClusterEntry, ...]) -> Iterator[Wrong]:
    """Yields problems of the quotas."""
    workers = workers_of(site)
    pinned = frozenset(name for cluster in clusters for name in cluster.pinned)
    rooms = {sku: _Room(found, pinned) for sku, found in workers.items()}
    for number, cluster in enumerate(clusters):
        first: dict[str, int] = {}
        for place, quota in enumerate(cluster.quota):
            path: YamlPath = ("virtual-clusters", number, "quota", place)
            earlier = first.setdefault(quota.sku, place)
            if earlier != place:
                message = f"{cluster.name} has a quota of {quota.sku} already"
                yield Wrong((*path, "sku"), "twice", message, f"keep one entry: the first is quota[{earlier}]")
            yield from _sku(site, path, quota, workers)
            yield from _amount(path, quota, workers.get(quota.sku))
            yield from _lending(path, quota, scheduler, workers.get(quota.sku))
            if quota.sku in rooms:
                yield from rooms[quota.sku].take(path, cluster.name, quota)


def _sku(site: Site, path: YamlPath, quota: QuotaEntry, workers: Mapping[str, Workers]) -> Iterator[Wrong]:
    if quota.sku not in site.skus:
        message = f"{quota.sku} is no machine type of layout.yaml"
        remedy = did_you_mean(quota.sku, workers or site.skus)
        yield Wrong((*path, "sku"), "unknown-sku", message, remedy)
    elif quota.sku not in workers:
        message = f"no worker is of the machine type {quota.sku}"
        yield Wrong((*path, "sku"), "sku-without-workers", message, did_you_mean(quota.sku, workers))


def _amount(path: YamlPath, quota: QuotaEntry, workers: Workers | None) -> Iterator[Wrong]:
    given = [key for key in _AMOUNTS if getattr(quota, key) is not None]
    if not given:
        yield Wrong(path, "missing", "needs machines, devices or cores", "say how much is guaranteed, e.g. machines: 1")
    for key in given[1:]:
        yield Wrong((*path, key), "contradiction", f"{given[0]} says how much already", "write one of them")
    if workers is not None and quota.devices is not None and not workers.resource:
        message = f"{quota.sku} has no devices"
        yield Wrong((*path, "devices"), "quota-unit", message, "write cores, or machines")
    if workers is not None and quota.cores is not None and workers.resource:
        message = f"{quota.sku} has {workers.resource}: cores go with the devices"
        yield Wrong((*path, "cores"), "quota-unit", message, "write devices, or machines")
    if quota.memory is not None and quota.cores is None:
        message = "goes with cores only: machines and devices have their share of the memory"
        yield Wrong((*path, "memory"), "contradiction", message, "remove it")


def units_of(quota: QuotaEntry, workers: Workers) -> int:
    """Returns the guarantee in units of the SKU."""
    return quota.machines * workers.units if quota.machines is not None else quota.devices or quota.cores or 0


def memory_of(quota: QuotaEntry, workers: Workers) -> int:
    """Returns the guaranteed part of the SKU's memory in bytes."""
    return quota.memory if quota.memory is not None else units_of(quota, workers) * workers.memory_bytes


def _lending(path: YamlPath, quota: QuotaEntry, scheduler: Scheduler, workers: Workers | None) -> Iterator[Wrong]:
    given: dict[str, Portion] = {key: getattr(quota, key) for key in ("lend", "borrow") if key in quota.given}
    for key, portion in given.items():
        if scheduler.type == "default" and portion not in ("none", 0):
            message = "has no effect: Kubernetes' own scheduler cannot lend"
            yield Wrong((*path, key), "no-effect", message, "remove it, or choose kueue", "warning")
        elif scheduler.type == "hived" and portion != "all":
            message = "has no effect: with HiveD, jobs of priority oppo use whatever is idle, and no others"
            yield Wrong((*path, key), "no-effect", message, "remove it, or choose kueue", "warning")
    if workers is None:
        return
    units, total = units_of(quota, workers), workers.units * len(workers.names)
    for key, portion, most, what in (
        ("lend", quota.lend, units, "guaranteed"),
        ("borrow", quota.borrow, total, f"all that {quota.sku} has"),
    ):
        if isinstance(portion, int) and portion > most:
            message = f"{portion} is more than the {most} {workers.unit} that are {what}"
            message = message if key == "lend" else f"{portion} is more than {most} {workers.unit}, {what}"
            yield Wrong((*path, key), "portion", message, f"write all, none or a number up to {most}")


@dataclass(frozen=True, slots=True)
class _Request:
    """The request of a virtual cluster for an SKU, and the sum of earlier requests. shown: an amount as text."""

    path: YamlPath
    cluster: str
    sku: str
    amount: int
    before: int
    shown: Callable[[int], str]


@dataclass
class _Room:
    """The remaining capacity of an SKU during the allocation of quotas, in the order of the file."""

    workers: Workers
    pinned: frozenset[str]
    units: int = field(default=0, init=False)
    memory: int = field(default=0, init=False)

    def take(self, path: YamlPath, cluster: str, quota: QuotaEntry) -> Iterator[Wrong]:
        """Allocates a quota. Yields a problem if the capacity is too small."""
        workers = self.workers
        key = next((one for one in _AMOUNTS if getattr(quota, one) is not None), "sku")
        units, memory = units_of(quota, workers), memory_of(quota, workers)
        yield from self._short(
            _Request(
                (*path, key),
                cluster,
                quota.sku,
                units,
                self.units,
                self._in_machines if quota.machines else self._in_units,
            ),
            workers.units,
        )
        if quota.memory is not None:
            request = _Request((*path, "memory"), cluster, quota.sku, memory, self.memory, format_bytes)
            yield from self._short(request, workers.units * workers.memory_bytes)
        self.units += units
        self.memory += memory

    def _in_units(self, count: int) -> str:
        return plural(count, self.workers.unit.removesuffix("s"))

    def _in_machines(self, count: int) -> str:
        return plural(count // self.workers.units, "machine")

    def _short(self, request: _Request, per_machine: int) -> Iterator[Wrong]:
        """Yields the problem of the request that exceeds the capacity. Later requests are not reported."""
        workers = self.workers
        for names, absent in ((workers.names, False), (workers.present, True)):
            count = sum(name not in self.pinned for name in names)
            room = count * per_machine
            # Reported once: at the quota that crosses the limit, not at those after it.
            if not request.before <= room < request.before + request.amount:
                continue
            left = request.shown(room - request.before)
            machines = plural(count, f"machine of {request.sku}", f"machines of {request.sku}")
            where = f"{machines} pinned to no one" if self.pinned.intersection(workers.names) else machines
            message = (
                f"{request.cluster} is to have {request.shown(request.amount)}, and what is left of {where} is {left}"
            )
            if absent:
                message, remedy = f"{message} while others are absent", "leave it until they are back, or write less"
                yield Wrong(request.path, "over-quota", message, remedy, "warning")
            else:
                yield Wrong(request.path, "over-quota", message, f"write {left} at most, or take from another")
            return
