"""What is put into Kubernetes' own objects, and where a file says otherwise; all else stays as it is written. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from pai_install.documents.document import Document, Text
from pai_install.documents.problem import Severity, YamlPath, short
from pai_install.jobs.compile import names
from pai_install.jobs.kubernetes import KubernetesFile, KubernetesJob
from pai_install.jobs.place import JobOwner, JobPlace
from pai_install.schedulers.job_fields import JobField, queue_field
from pai_install.schedulers.registry import backend_of
from pai_install.scheduling.job_kinds import template_ways

Object = dict[str, Any]
# files of other projects name their own, and the one of the group takes its place
NAMESPACE: YamlPath = ("metadata", "namespace")


def native_objects(
    native: KubernetesFile, places: Mapping[str, JobPlace]
) -> tuple[tuple[Object, ...], tuple[Object, ...]]:
    """The jobs, and what goes with them. places: of each job by its name; one group's all."""
    jobs = tuple(_with(job.content, injected(job, places[job.name])) for job in native.jobs)
    owner = places[native.name].owner
    return jobs, tuple(_with(one.content, _owned(owner, ())) for one in native.beside)


def contradictions(native: KubernetesFile, places: Mapping[str, JobPlace], *, queues: bool = True) -> None:
    """Adds a problem to the documents for each value of theirs that would have to be another.

    The namespace of the group replaces another one, with a warning. queues: whether a queue counts, too.
    """
    for job in native.jobs:
        _contradict(job.document, (one for one in injected(job, places[job.name]) if queues or not one.queue))
    for one in native.beside:
        _contradict(one.document, _owned(places[native.name].owner, ()))


def injected(job: KubernetesJob, place: JobPlace) -> Iterator[JobField]:
    """What a job gets: its group's namespace, whose it is, its virtual cluster and priority."""
    yield from _owned(place.owner, ())
    ways = [way for way in template_ways(job.content, job.kind) if way]
    for way in ((), *ways):
        yield JobField((*way, "metadata", "labels", names.JOB), job.name, f"the name of the job is {job.name}")
        yield queue_field((*way, "metadata", "labels", names.CLUSTER), place)
    for way in ways:
        yield from _labels(place.owner, way)
    yield JobField(("metadata", "annotations", names.PRIORITY), place.priority, "its priority")
    yield from backend_of(place.scheduling.backend).queue_fields(job, place)


def _owned(owner: JobOwner, way: YamlPath) -> Iterator[JobField]:
    yield JobField(NAMESPACE, owner.namespace, f"jobs of {owner.group} run in {owner.namespace}")
    yield from _labels(owner, way)


def _labels(owner: JobOwner, way: YamlPath) -> Iterator[JobField]:
    yield JobField((*way, "metadata", "labels", names.USER), owner.user, f"the job is {owner.user}'s")
    yield JobField((*way, "metadata", "labels", names.GROUP), owner.group, f"the job is of the group {owner.group}")


def _contradict(document: Document, wanted: Iterator[JobField]) -> None:
    for one in wanted:
        found = document.at(one.path)
        if isinstance(found, Text) and str(found) not in ("", one.value):
            message, severity = f"{short(str(found))} is written here, but {one.reason}", _severity(one)
            document.add(
                one.path, "site.contradiction", message, f"remove it: it is set to {one.value}", severity=severity
            )


def _severity(one: JobField) -> Severity:
    return "warning" if one.path == NAMESPACE else "error"


def _with(content: Mapping[str, Any], wanted: Iterator[JobField]) -> Object:
    # The document is printed and checked again later, and must stay as the user wrote it.
    made: Object = deepcopy(dict(content))
    for one in wanted:
        holder: Any = made
        for key in one.path[:-1]:
            if isinstance(key, str) and holder.get(key) is None:
                holder[key] = {}
            holder = holder[key]
        holder[one.path[-1]] = one.value
    return made
