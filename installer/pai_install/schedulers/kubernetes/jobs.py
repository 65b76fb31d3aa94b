"""A job for Kubernetes' own scheduler: a JobSet whose pods start one by one. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pai_install.jobs.compile.jobset import job_set, outline_of
from pai_install.jobs.compile.pod import PodExtras, secrets
from pai_install.jobs.model import Job
from pai_install.jobs.place import JobPlace

Object = dict[str, Any]


def default_objects(job: Job, place: JobPlace) -> Iterator[Object]:
    """The JobSet first."""
    gang = outline_of(job, place)
    extras = {role.name: PodExtras({"priorityClassName": place.priority}) for role in job.roles}
    yield job_set(gang, extras)
    yield from secrets(gang)
