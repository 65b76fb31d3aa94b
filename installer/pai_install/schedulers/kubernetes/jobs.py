"""A job for Kubernetes' own scheduler: a JobSet whose pods start one by one. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pai_install.jobs.compile.jobset import job_set, outline_of
from pai_install.jobs.compile.pod import PodExtras, companions
from pai_install.jobs.kubernetes import KubernetesJob
from pai_install.jobs.model import Job, Role
from pai_install.jobs.place import JobPlace
from pai_install.schedulers.job_fields import JobField, pod_ways, priority_field
from pai_install.scheduling.unqueued import CLASS, asks_devices, is_limited

Object = dict[str, Any]


def kubernetes_objects(job: Job, place: JobPlace) -> Iterator[Object]:
    """The JobSet first."""
    gang = outline_of(job, place)
    extras = {role.name: PodExtras({"priorityClassName": _class(role, place)}) for role in job.roles}
    yield job_set(gang, extras)
    yield from companions(gang)


def _class(role: Role, place: JobPlace) -> str:
    """No queue counts pods without devices."""
    limited = is_limited(place.scheduling, place.owner.namespace) and not role.resources.gpus
    return CLASS if limited else place.priority


def kubernetes_fields(job: KubernetesJob, place: JobPlace) -> Iterator[JobField]:
    """The priority of all pods; the queue is the namespace."""
    for way in pod_ways(job):
        outside = not asks_devices(place.scheduling, job.content, way)
        yield priority_field(way, place, outside=outside)
