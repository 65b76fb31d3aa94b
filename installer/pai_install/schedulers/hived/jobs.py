"""A job for HiveD: a JobSet whose pods name their virtual cluster's scheduler and are one affinity group. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pai_install.jobs.compile.jobset import job_set, outline_of
from pai_install.jobs.compile.pod import Outline, PodExtras, companions
from pai_install.jobs.kubernetes import KubernetesJob
from pai_install.jobs.model import Job, Role
from pai_install.jobs.place import JobPlace
from pai_install.schedulers.hived.placement import PodGroup, refusal
from pai_install.schedulers.job_fields import (
    FieldMisfit,
    FieldProblem,
    JobField,
    SubmittedPod,
    pod_ways,
    priority_field,
    queue_field,
)
from pai_install.scheduling.amounts import held_cells
from pai_install.scheduling.job_queue import HIVED_MARKER, HIVED_SCHEDULER, HIVED_SPEC, leaf_types, requests_hived
from pai_install.scheduling.model import PRIORITIES

Object = dict[str, Any]

# a line below affinityGroup. Members have no name
_GANG_NAME = re.compile(r" +name: *(.*?) *$")
_DEVICES = "metadata.annotations['hivedscheduler.microsoft.com/pod-leaf-cell-isolation']"


def hived_objects(job: Job, place: JobPlace) -> Iterator[Object]:
    """The JobSet first."""
    gang = outline_of(job, place)
    yield job_set(gang, {role.name: _extras(gang, role) for role in job.roles})
    yield from companions(gang)


def _extras(gang: Outline, role: Role) -> PodExtras:
    given = {"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"fieldRef": {"fieldPath": _DEVICES}}}
    return PodExtras(
        {"schedulerName": f"{HIVED_SCHEDULER}{gang.place.cluster.name}", "priorityClassName": gang.place.priority},
        {HIVED_SPEC: _annotation(gang, role)},
        {HIVED_MARKER: "1"},
        (given,) if role.resources.gpus else (),
        # a machine may have cells of several types, and its label names one
        selects_sku=False,
    )


def _annotation(gang: Outline, role: Role) -> str:
    """Plain lines, as the API server wants them. A role that starts with no other is no group: each pod is its own."""
    job, place = gang.job, gang.place
    sku = "" if role.pinned_cell else _sku(job, place, role)
    lines = [
        f"virtualCluster: {place.cluster.name}",
        f"priority: {PRIORITIES[place.priority]}",
        *([f"pinnedCellId: {role.pinned_cell}"] if role.pinned_cell else []),
        *([f"leafCellType: {leaf_types(place.scheduling.supply)[sku]}"] if sku else []),
        f"leafCellNumber: {_cells(job, place, role)}",
        *(["gangReleaseEnable: true"] if job.gang_release else []),
        *(["lazyPreemptionEnable: true"] if job.lazy_preemption else []),
        "ignoreK8sSuggestedNodes: false",
    ]
    if _is_gang(job, role):
        members = [
            line
            for one in _together(job, role)
            for line in (f"  - podNumber: {one.instances}", f"    leafCellNumber: {_cells(job, place, one)}")
        ]
        name = ".".join(filter(None, (place.owner.namespace, gang.names.job, role.affinity_group)))
        lines += ["affinityGroup:", f"  name: {name}", "  members:", *members]
    return "\n".join(lines)


def _is_gang(job: Job, role: Role) -> bool:
    """Whether pods of the role start together."""
    return job.gang or bool(role.affinity_group)


def _together(job: Job, role: Role) -> tuple[Role, ...]:
    """The roles whose pods HiveD places together with those of a role."""
    if not _is_gang(job, role):
        return (role,)
    return tuple(one for one in job.roles if one.affinity_group == role.affinity_group)


def _sku(job: Job, place: JobPlace, role: Role) -> str:
    """The machine type that a pod names; empty: any. A group is on one, so where one role names it, all do.

    Machines without devices, or with those of another maker, are cells, too, and HiveD takes any: on a site that has
    such a job names the first type that has what it needs.
    """
    together = _together(job, role)
    named = role.resources.sku or next((it.resources.sku for it in together if it.resources.sku), None)
    if named:
        return named
    several = len({it.resource for it in place.scheduling.supply.values()}) > 1
    return place.supply(max(together, key=lambda it: it.resources.gpus)).sku if several else ""


def _cells(job: Job, place: JobPlace, role: Role) -> int:
    """The number of cells that a pod of the role holds on machines of its type."""
    own, requested = place.supply(role), role.resources
    supply = place.scheduling.supply.get(_sku(job, place, role), own)
    unit = supply.cpu_millis, supply.memory_bytes
    return held_cells(requested.gpus, requested.cpu * 1000, requested.memory_mb * 2**20, unit)


def hived_misfits(job: Job, place: JobPlace) -> Iterator[FieldMisfit]:
    """Why HiveD can never start a job, at the places of its file."""
    warned: set[str] = set()
    for role in job.roles:
        together = _together(job, role)
        if together[0].name in warned:
            continue
        warned.add(together[0].name)
        pods = Counter[int]()
        for one in together:
            pods[_cells(job, place, one)] += one.instances if _is_gang(job, role) else 1
        sku = (role.resources.sku or "") if role.pinned_cell else _sku(job, place, role)
        group = PodGroup(pods, leaf_types(place.scheduling.supply).get(sku, sku), role.pinned_cell)
        if why := refusal(place.scheduling, place.cluster.name, group, opportunistic=place.priority == "oppo"):
            at = f"pin:{role.name}" if role.pinned_cell else "virtual-cluster"
            yield FieldMisfit(at, why, "ask for less, or divide the roles by affinityGroupName and pinnedCellId")


def hived_fields(job: KubernetesJob, place: JobPlace) -> Iterator[JobField]:
    """The scheduler of pods with devices, and the priority of all pods."""
    for way in pod_ways(job):
        queued = requests_hived(job.content, way)
        if queued:
            yield queue_field((*way, "spec", "schedulerName"), place, HIVED_SCHEDULER)
        yield priority_field(way, place, outside=not queued)


def hived_problems(pod: SubmittedPod) -> Iterator[FieldProblem]:
    """Devices that HiveD does not give, and lines that the annotation of its pods lacks."""
    for path in pod.devices:
        message = "HiveD assigns devices on this site: request them in pods of HiveD"
        yield FieldProblem(path, message, "write the pods as docs/hived.md says")
    way = pod.path[:-1]
    if not requests_hived(pod.job.content, way):
        return
    path = (*way, "metadata", "annotations", HIVED_SPEC)
    lines = pod.text(path).splitlines()
    for line in (f"virtualCluster: {pod.place.cluster.name}", "ignoreK8sSuggestedNodes: false"):
        if line not in lines:
            yield FieldProblem(path, f"a pod of HiveD needs the line {line}", "add it")
    begins = f"{pod.place.owner.namespace}."
    gangs = [match[1] for line in lines if (match := _GANG_NAME.match(line))]
    if any(not name.startswith(begins) for name in gangs):
        message = f"the name of an affinityGroup begins with its namespace and a dot: {begins}"
        yield FieldProblem(path, message, f"name it {begins}{gangs[0]}")
