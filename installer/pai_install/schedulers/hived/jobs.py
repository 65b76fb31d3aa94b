"""A job for HiveD: a JobSet whose pods name their virtual cluster's scheduler and are one affinity group. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pai_install.jobs.compile.jobset import job_set, outline_of
from pai_install.jobs.compile.pod import Outline, PodExtras, secrets
from pai_install.jobs.kubernetes import NativeJob
from pai_install.jobs.model import Job, Role
from pai_install.jobs.place import JobPlace
from pai_install.schedulers.hived.cells import leaf_types
from pai_install.schedulers.job_fields import (
    FieldProblem,
    JobField,
    SubmittedPod,
    pod_ways,
    priority_reason,
    queue_field,
)
from pai_install.scheduling.amounts import held_cells
from pai_install.scheduling.job_queue import HIVED_MARKER, HIVED_SCHEDULER, HIVED_SPEC, asks_hived
from pai_install.scheduling.model import PRIORITIES

Object = dict[str, Any]

_DEVICES = "metadata.annotations['hivedscheduler.microsoft.com/pod-leaf-cell-isolation']"


def hived_objects(job: Job, place: JobPlace) -> Iterator[Object]:
    """The JobSet first."""
    gang = outline_of(job, place)
    yield job_set(gang, {role.name: _extras(gang, role) for role in job.roles})
    yield from secrets(gang)


def _extras(gang: Outline, role: Role) -> PodExtras:
    given = {"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"fieldRef": {"fieldPath": _DEVICES}}}
    return PodExtras(
        {"schedulerName": f"{HIVED_SCHEDULER}{gang.place.cluster.name}", "priorityClassName": gang.place.priority},
        {HIVED_SPEC: _annotation(gang, role)},
        {HIVED_MARKER: "1"},
        (given,) if role.resources.gpus else (),
    )


def _annotation(gang: Outline, role: Role) -> str:
    """Plain lines, as the API server wants them. A job that need not start whole is no group: each pod is its own."""
    sku = _sku(gang, role)
    lines = [
        f"virtualCluster: {gang.place.cluster.name}",
        f"priority: {PRIORITIES[gang.place.priority]}",
        *([f"leafCellType: {leaf_types(gang.place.scheduling.supply)[sku]}"] if sku else []),
        f"leafCellNumber: {_cells(gang, role)}",
        "ignoreK8sSuggestedNodes: false",
    ]
    if gang.job.gang:
        members = [
            line
            for one in gang.job.roles
            for line in (f"  - podNumber: {one.instances}", f"    leafCellNumber: {_cells(gang, one)}")
        ]
        group = f"{gang.place.owner.namespace}.{gang.names.job}"
        lines += ["affinityGroup:", f"  name: {group}", "  members:", *members]
    return "\n".join(lines)


def _sku(gang: Outline, role: Role) -> str:
    """The machine type that a pod names; empty: any. A group is on one, so where one role names it, all do.

    Machines without devices, or with those of another maker, are cells, too, and HiveD takes any: on a site that has
    such a job names the first type that has what it needs.
    """
    together = gang.job.roles if gang.job.gang else (role,)
    named = role.resources.sku or next((it.resources.sku for it in together if it.resources.sku), None)
    if named:
        return named
    several = len({it.resource for it in gang.place.scheduling.supply.values()}) > 1
    return gang.place.supply(max(together, key=lambda it: it.resources.gpus)).sku if several else ""


def _cells(gang: Outline, role: Role) -> int:
    """What a pod of the role holds on machines of its type."""
    own, sku, asked = gang.place.supply(role), _sku(gang, role), role.resources
    supply = gang.place.scheduling.supply.get(sku, own)
    unit = supply.cpu_millis, supply.memory_bytes
    return held_cells(asked.gpus, asked.cpu * 1000, asked.memory_mb * 2**20, unit)


def hived_fields(job: NativeJob, place: JobPlace) -> Iterator[JobField]:
    """The scheduler of pods with devices, and the priority of all pods."""
    for way in pod_ways(job):
        if asks_hived(job.content, way):
            yield queue_field((*way, "spec", "schedulerName"), place, HIVED_SCHEDULER)
        yield JobField((*way, "spec", "priorityClassName"), *priority_reason(place))


def hived_problems(pod: SubmittedPod) -> Iterator[FieldProblem]:
    """Devices that HiveD does not give, and lines that the annotation of its pods lacks."""
    for path in pod.devices:
        message = "devices are given by HiveD here: ask for them in pods of HiveD"
        yield FieldProblem(path, message, "write the pods as docs/hived.md says")
    way = pod.path[:-1]
    if not asks_hived(pod.job.content, way):
        return
    path = (*way, "metadata", "annotations", HIVED_SPEC)
    lines = pod.text(path).splitlines()
    for line in (f"virtualCluster: {pod.place.cluster.name}", "ignoreK8sSuggestedNodes: false"):
        if line not in lines:
            yield FieldProblem(path, f"a pod of HiveD needs the line {line}", "add it")
