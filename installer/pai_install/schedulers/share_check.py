"""Jobs whose pods request more cores or memory than their devices come with: the API server would refuse them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pai_install.documents.quantity import format_bytes
from pai_install.jobs.capacity import InstanceRequest
from pai_install.jobs.kubernetes import KubernetesJob
from pai_install.kube.objects import text
from pai_install.scheduling.device_shares import DeviceShare, ShareRules, is_within
from pai_install.scheduling.job_kinds import template_ways
from pai_install.scheduling.job_queue import cell_type_of, cells_of, hived_spec, requests_hived
from pai_install.system.words import plural

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class ShareMisfit:
    """Why the pods of a role are refused."""

    role: str
    message: str
    remedy: str


def excessive_requests(rules: ShareRules, requests: Iterable[InstanceRequest]) -> Iterator[ShareMisfit]:
    """Those of a job of OpenPAI's protocol. With HiveD, such a job holds the cells for what it requests."""
    for one in requests if not rules.cells else ():
        vendors = {it.vendor for it in rules.shares if one.sku in (None, it.name)}
        shares = tuple(it for it in rules.shares if it.vendor in vendors)
        if one.devices:
            yield from _misfits(one.role, shares, one.devices, one.cpu_millis, one.memory_bytes, "device")


def excessive_roles(rules: ShareRules, job: KubernetesJob) -> Iterator[ShareMisfit]:
    """Those of a job that is a Kubernetes object."""
    for role, way in zip(job.roles, template_ways(job.content, job.kind), strict=False):
        for shares, units in _limits(rules, job, way) if rules.cells else _of_devices(rules, role.devices):
            unit = "cell" if rules.cells else "device"
            yield from _misfits(role.name, shares, units, role.cpu_millis, role.memory_bytes, unit)


def _of_devices(rules: ShareRules, devices: Mapping[str, int]) -> Iterator[tuple[Sequence[DeviceShare], int]]:
    for vendor, shares in rules.by_vendor.items():
        units = sum(count for name, count in devices.items() if name.startswith(vendor))
        if units:
            yield shares, units


def _limits(
    rules: ShareRules, job: KubernetesJob, way: Sequence[str | int]
) -> Iterator[tuple[Sequence[DeviceShare], int]]:
    """A pod of HiveD that names no machine type may get cells of any."""
    if not requests_hived(job.content, way):
        return
    template: Any = job.content
    for key in way:
        template = template[key]
    spec = hived_spec(template)
    for shares in rules.candidates(cell_type_of(spec), text(spec.get("pinnedCellId"))):
        yield shares, cells_of(spec)


def _misfits(
    role: str, shares: Sequence[DeviceShare], units: int, cpu_millis: int, memory_bytes: int, unit: str
) -> Iterator[ShareMisfit]:
    if is_within(shares, units, cpu_millis, memory_bytes):
        return
    largest = max(shares, key=lambda one: (one.cpu_millis, one.memory_bytes))
    requested = f"{cpu_millis / 1000:g} cores and {format_bytes(memory_bytes // _MIB * _MIB)}"
    message = (
        f"one instance of {role} requests {plural(units, unit)}, {requested}, "
        f"but each {unit} of {largest.name} comes with {largest}"
    )
    yield ShareMisfit(role, message, f"request less, or more {unit}s")
