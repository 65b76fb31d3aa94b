"""A job for Kubernetes' own scheduler: a JobSet whose pods start one by one. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pai_install.jobs.compile.jobset import job_set, outline_of
from pai_install.jobs.compile.pod import PodExtras, companions
from pai_install.jobs.kubernetes import NativeJob
from pai_install.jobs.model import Job
from pai_install.jobs.place import JobPlace
from pai_install.schedulers.job_fields import JobField, pod_ways, priority_reason

Object = dict[str, Any]


def kubernetes_objects(job: Job, place: JobPlace) -> Iterator[Object]:
    """The JobSet first."""
    gang = outline_of(job, place)
    extras = {role.name: PodExtras({"priorityClassName": place.priority}) for role in job.roles}
    yield job_set(gang, extras)
    yield from companions(gang)


def kubernetes_fields(job: NativeJob, place: JobPlace) -> Iterator[JobField]:
    """The priority of all pods; the queue is the namespace."""
    for way in pod_ways(job):
        yield JobField((*way, "spec", "priorityClassName"), *priority_reason(place))
