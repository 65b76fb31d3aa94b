"""A job and its place -> the objects of the site's scheduler. Pure."""

from __future__ import annotations

from typing import Any

from pai_install.jobs.model import Job
from pai_install.jobs.place import JobPlace
from pai_install.schedulers.registry import backend_of


def objects_of(job: Job, place: JobPlace) -> tuple[dict[str, Any], ...]:
    """The job's own object, then those that go with it. Raises PaiError for what the scheduler cannot do."""
    return tuple(backend_of(place.scheduling.backend).job_objects(job, place))
