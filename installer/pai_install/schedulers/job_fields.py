"""Values and reasons of the fields that put a job into its queue. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pai_install.documents.problem import YamlPath
from pai_install.jobs.kubernetes import NativeJob
from pai_install.jobs.place import JobPlace
from pai_install.scheduling.job_kinds import POD, template_ways


@dataclass(frozen=True, slots=True)
class JobField:
    """A field that an object gets: its value at `path`. reason: the cause, in words."""

    path: YamlPath
    value: str
    reason: str


def queue_reason(place: JobPlace) -> tuple[str, str]:
    """The virtual cluster, and why the job is in it."""
    return place.cluster.name, f"the job goes to the virtual cluster {place.cluster.name}"


def priority_reason(place: JobPlace) -> tuple[str, str]:
    """The priority, and why the job has it."""
    return place.priority, f"its priority is {place.priority}"


def pod_ways(job: NativeJob) -> list[YamlPath]:
    """The way to each pod of a job; a pod is its own."""
    return [()] if job.kind is POD else list(template_ways(job.content, job.kind))
