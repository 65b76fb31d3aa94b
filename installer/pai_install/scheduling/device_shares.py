"""The share of cores and memory of a machine that comes with a device, as a limit of requests. Pure.

HiveD counts cells, and the quota of Kubernetes' own scheduler counts devices. Without this limit, a pod with one device
could request the cores of all, and the other devices of its machine would be of no use. Kueue's quotas count cores and
memory of each machine type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pai_install.documents.quantity import format_bytes
from pai_install.scheduling.admission import Rule, literal, vendors
from pai_install.scheduling.job_queue import HIVED_SCHEDULER, HIVED_SPEC, leaf_types
from pai_install.scheduling.model import Scheduling

# percent of the share, where the site has no setting
WHOLE = 100
# A job requests whole cores, also on a machine with more devices than cores.
_LEAST_MILLIS = 1000
_MEBIBYTE = 2**20
# machine types in a message of the API server
_MOST_SHOWN = 8
_CELLS = r"(?m)^(leafCellNumber|gpuNumber): (0|[1-9][0-9]{0,3})$"
_ANY_CELLS = "(?m)^(leafCellNumber|gpuNumber):"
_CELL_TYPE = "(?m)^(leafCellType|gpuType): .*$"
_PINNED = "(?m)^pinnedCellId: .+$"


@dataclass(frozen=True, slots=True)
class DeviceShare:
    """The most that pods may request for each unit of a machine type.

    name: of the machine type, with HiveD of its cells. vendor: prefix of its devices' names, empty without devices.
    units: of one machine.
    """

    name: str
    vendor: str
    units: int
    cpu_millis: int
    memory_bytes: int

    def __str__(self) -> str:
        """In words, e.g. "11.7 cores and 115Gi"."""
        memory = format_bytes(self.memory_bytes // _MEBIBYTE * _MEBIBYTE)
        return f"{self.cpu_millis / 1000:g} cores and {memory}"


@dataclass(frozen=True, slots=True)
class ShareRules:
    """The shares of a site with a limit. cells: HiveD counts cells, and machines without devices have some, too."""

    shares: tuple[DeviceShare, ...]
    cells: bool

    @property
    def by_vendor(self) -> Mapping[str, tuple[DeviceShare, ...]]:
        """Vendor -> the shares of its devices."""
        return {one.vendor: tuple(it for it in self.shares if it.vendor == one.vendor) for one in self.shares}

    def candidates(self, cell_type: str, pinned: str) -> Sequence[tuple[DeviceShare, ...]]:
        """The shares that limit a pod of HiveD: it has to be within one of each tuple.

        cell_type, pinned: as its annotation names them. Without either, HiveD takes cells of any machine type.
        """
        named = tuple(one for one in self.shares if one.name == cell_type)
        if named or pinned:
            return (named or self.shares,)
        return tuple(self.by_vendor.values())


def share_rules(scheduling: Scheduling | None) -> ShareRules | None:
    """The limit of a site, None where its quotas count cores and memory, or where the setting removes it."""
    if scheduling is None or not _is_limited(scheduling):
        return None
    cells = scheduling.backend == "hived"
    percent = WHOLE if scheduling.device_share is None else scheduling.device_share
    names = leaf_types(scheduling.supply)
    shares = tuple(
        DeviceShare(
            names[sku] if cells else sku,
            next(iter(vendors([one.resource])), "") if one.resource else "",
            one.units,
            max(_LEAST_MILLIS, one.cpu_millis) * percent // 100,
            one.memory_bytes * percent // 100,
        )
        for sku, one in scheduling.supply.items()
        if one.resource or cells
    )
    return ShareRules(shares, cells) if shares else None


def _is_limited(scheduling: Scheduling) -> bool:
    """Whether a quota could hold the cores of other devices. A queue of Volcano is one amount of all machine types."""
    if scheduling.device_share == 0 or scheduling.backend == "kueue":
        return False
    return scheduling.backend != "volcano" or len(scheduling.supply) > 1


def is_within(shares: Sequence[DeviceShare], units: int, cpu_millis: int, memory_bytes: int) -> bool:
    """Whether a request is within its units' share of one machine type. All devices of a machine have all of it."""
    return units >= _most(shares) or any(
        cpu_millis <= units * one.cpu_millis and memory_bytes <= units * one.memory_bytes for one in shares
    )


def _most(shares: Iterable[DeviceShare]) -> int:
    return max((one.units for one in shares), default=0)


def admission_rules(rules: ShareRules) -> Iterator[Rule]:
    """Rules for jobs and pods of users, with the variable `templates`. Templates of pods never change."""
    limited = _cells(rules) if rules.cells else _devices(rules)
    shown = [f"{one.name} {one}" for one in rules.shares]
    more = f", and {len(shown) - _MOST_SHOWN} more types" if len(shown) > _MOST_SHOWN else ""
    unit = "cell" if rules.cells else "device"
    message = (
        f"a pod requests at most the share of its {unit}s. Each {unit} comes with: "
        f"{', '.join(shown[:_MOST_SHOWN])}{more}. Request less, or more {unit}s"
    )
    yield Rule(f"oldObject != null || variables.templates.all(t, !has(t.spec) || ({limited}))", literal(message))


def _devices(rules: ShareRules) -> str:
    """An expression about template `t`: whether each vendor's devices come with what its pod requests."""
    return " && ".join(
        f"[[{_devices_of(vendor)}, {_requested('cpu')}, {_requested('memory')}]].all(a, a[0] == 0.0 || "
        f"{literal(_amounts(shares))}.exists(k, {_IS_WITHIN}))"
        for vendor, shares in rules.by_vendor.items()
    )


def _cells(rules: ShareRules) -> str:
    """An expression about template `t`: whether a pod of HiveD has enough cells. Others have none."""
    note = f"t[?'metadata'].annotations[?{literal(HIVED_SPEC)}].orValue('')"
    scheduler = "t.spec[?'schedulerName'].orValue('')"
    types = f"{note}.findAll({literal(_CELL_TYPE)})"
    # A key in two spellings, or one in another form, is read as no key.
    name = f"({types}.size() == 1 ? {types}[0].split(': ')[1].replace('\"', '').replace(\"'\", '').trim() : '')"
    known = literal({one.name: [_amounts((one,))] for one in rules.shares})
    any_type = literal([_amounts(shares) for shares in rules.candidates("", "")])
    pinned = literal([_amounts(shares) for shares in rules.candidates("", "any")])
    number = f"{note}.findAll({literal(_CELLS)})"
    count = f"({note}.findAll({literal(_ANY_CELLS)}).size() == 1 && {number}.size() == 1 ? "
    count += f"double({number}[0].split(': ')[1]) : 0.0)"
    return (
        f"!{scheduler}.startsWith({literal(HIVED_SCHEDULER)}) || "
        f"[[{count}, {_requested('cpu')}, {_requested('memory')}]].all(a, {known}[?{name}].orValue("
        f"{note}.matches({literal(_PINNED)}) ? {pinned} : {any_type}).all(g, g.exists(k, {_IS_WITHIN})))"
    )


# an expression: whether request `a` (units, cores, bytes) is within share `k` (units of a machine, cores, bytes)
_IS_WITHIN = "a[0] >= k[0] || (a[1] <= a[0] * k[1] + 0.0001 && a[2] <= a[0] * k[2] + 0.5)"


def _amounts(shares: Sequence[DeviceShare]) -> list[list[float]]:
    return [[float(_most(shares)), one.cpu_millis / 1000, float(one.memory_bytes)] for one in shares]


_MAIN = "t.spec[?'containers'].orValue([])"
_INIT = "t.spec[?'initContainers'].orValue([])"
# CEL would take `i` for a mapping of texts after orValue('')
_STAYS = "has(i.restartPolicy) && i.restartPolicy == 'Always'"


def _requested(resource: str) -> str:
    """An expression: cores or bytes that the scheduler counts for the pod of template `t`, or more."""
    stays = f"{_INIT}.filter(i, {_STAYS}).map(i, {_amount('i', resource)}).sum()"
    main = f"{_MAIN}.map(c, {_amount('c', resource)}).sum()"
    begins = f"{_INIT}.filter(i, !({_STAYS})).map(i, {_amount('i', resource)} + {stays})"
    return f"([{_amount('t.spec', resource)}, {main} + {stays}] + {begins}).max()"


def _amount(holder: str, resource: str) -> str:
    """An expression: what a container requests. Kubernetes takes the limit where it requests nothing."""
    found = [f"{holder}[?'resources'].{which}[?{literal(resource)}]" for which in ("requests", "limits")]
    return f"quantity(string({found[0]}.orValue({found[1]}.orValue('0')))).asApproximateFloat()"


def _devices_of(vendor: str) -> str:
    """An expression: the devices of the pod of template `t`, or fewer."""

    def count(holder: str) -> str:
        limits = f"{holder}[?'resources'].limits.orValue({{}})"
        amount = f"quantity(string({limits}[r])).asApproximateFloat()"
        return f"{limits}.filter(r, r.startsWith({literal(vendor)})).map(r, {amount}).sum()"

    return f"([{_MAIN}.map(c, {count('c')}).sum()] + {_INIT}.map(i, {count('i')})).max()"
