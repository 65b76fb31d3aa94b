"""A job for Kueue: a JobSet in the queue of its virtual cluster, which starts it whole or not at all. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pai_install.jobs.compile.jobset import job_set, outline_of
from pai_install.jobs.compile.pod import PodExtras, companions
from pai_install.jobs.model import Job
from pai_install.jobs.place import JobPlace
from pai_install.schedulers.job_fields import FieldProblem, JobField, SubmittedPod, priority_reason, queue_field
from pai_install.scheduling.job_queue import PRIORITY_LABEL, QUEUE_LABEL

Object = dict[str, Any]

# a flavor with a topology wants to know how near each other pods have to be
_ANYWHERE = {"kueue.x-k8s.io/podset-unconstrained-topology": "true"}


def kueue_objects(job: Job, place: JobPlace) -> Iterator[Object]:
    """The JobSet first."""
    gang = outline_of(job, place)
    extras = {role.name: PodExtras(annotations=_ANYWHERE) for role in job.roles}
    yield job_set(gang, extras, **{QUEUE_LABEL: place.cluster.name, PRIORITY_LABEL: place.priority})
    yield from companions(gang)


def kueue_fields(place: JobPlace) -> Iterator[JobField]:
    """The labels of the queue and the priority."""
    yield queue_field(("metadata", "labels", QUEUE_LABEL), place)
    yield JobField(("metadata", "labels", PRIORITY_LABEL), *priority_reason(place))


def kueue_problems(pod: SubmittedPod) -> Iterator[FieldProblem]:
    """A priority class of a pod with devices: Kueue's priority is a label."""
    path = (*pod.path, "priorityClassName")
    if pod.devices and pod.text(path):
        message = "the priority of a job with devices is a label with Kueue"
        yield FieldProblem(path, message, "remove it, and say --priority")
