"""What is put into Kubernetes' own objects, and where a file says otherwise; all else stays as it is written. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from pai_install.documents.document import Document, Text
from pai_install.documents.problem import YamlPath, short
from pai_install.jobs.compile import names
from pai_install.jobs.kubernetes import Native, NativeJob
from pai_install.jobs.place import JobOwner, JobPlace
from pai_install.kube.objects import child
from pai_install.schedulers.hived.policies import MARKER, SCHEDULER
from pai_install.schedulers.kueue.policies import PRIORITY_LABEL, QUEUE_LABEL
from pai_install.schedulers.volcano.policies import QUEUE_NOTE
from pai_install.scheduling.job_kinds import POD, VOLCANO_JOB, template_ways
from pai_install.scheduling.usage.amounts import asked_by_pod

Object = dict[str, Any]
_VOLCANO = "volcano"


@dataclass(frozen=True, slots=True)
class Injected:
    """A value that an object has at `path`. why: whence it comes."""

    path: YamlPath
    value: str
    why: str


def native_objects(native: Native, places: Mapping[str, JobPlace]) -> tuple[tuple[Object, ...], tuple[Object, ...]]:
    """The jobs, and what goes with them. places: of each job by its name; one group's all."""
    jobs = tuple(_with(job.content, injected(job, places[job.name])) for job in native.jobs)
    owner = places[native.name].owner
    return jobs, tuple(_with(one.content, _owned(owner, ())) for one in native.beside)


def contradictions(native: Native, places: Mapping[str, JobPlace]) -> None:
    """Adds a problem to the documents for each value of theirs that would have to be another."""
    for job in native.jobs:
        _contradict(job.document, injected(job, places[job.name]))
    for one in native.beside:
        _contradict(one.document, _owned(places[native.name].owner, ()))


def injected(job: NativeJob, place: JobPlace) -> Iterator[Injected]:
    """What a job gets: its group's namespace, whose it is, its virtual cluster and priority."""
    yield from _owned(place.owner, ())
    marks = {names.JOB: job.name, names.CLUSTER: place.cluster.name}
    ways = [way for way in template_ways(job.content, job.kind) if way]
    for way in ((), *ways):
        for label, value in marks.items():
            yield Injected((*way, "metadata", "labels", label), value, f"the job {job.name} goes to {value}")
    for way in ways:
        yield from _labels(place.owner, way)
    yield Injected(("metadata", "annotations", names.PRIORITY), place.priority, "its priority")
    yield from _queue(job, place)


def _owned(owner: JobOwner, way: YamlPath) -> Iterator[Injected]:
    yield Injected(("metadata", "namespace"), owner.namespace, f"jobs of {owner.group} run in {owner.namespace}")
    yield from _labels(owner, way)


def _labels(owner: JobOwner, way: YamlPath) -> Iterator[Injected]:
    yield Injected((*way, "metadata", "labels", names.USER), owner.user, f"the job is {owner.user}'s")
    yield Injected((*way, "metadata", "labels", names.GROUP), owner.group, f"the job is of the group {owner.group}")


def _queue(job: NativeJob, place: JobPlace) -> Iterator[Injected]:
    """As the site's scheduler knows virtual clusters and priorities."""
    cluster, backend = place.cluster.name, place.scheduling.backend
    to, rank = f"the job goes to the virtual cluster {cluster}", f"its priority is {place.priority}"
    if backend == "kueue":
        yield Injected(("metadata", "labels", QUEUE_LABEL), cluster, to)
        yield Injected(("metadata", "labels", PRIORITY_LABEL), place.priority, rank)
    elif backend == "volcano" and job.kind is VOLCANO_JOB:
        yield Injected(("spec", "schedulerName"), _VOLCANO, "Volcano places it")
        yield Injected(job.kind.queue, cluster, to)
        yield Injected(("spec", "priorityClassName"), place.priority, rank)
    elif backend == "volcano" and job.kind.queue:
        yield Injected(job.kind.queue, cluster, to)
        yield Injected((*job.kind.queue[:-1], "priorityClass"), place.priority, rank)
    else:
        yield from _of_pods(job, place, to, rank)


def _of_pods(job: NativeJob, place: JobPlace, to: str, rank: str) -> Iterator[Injected]:
    """Where pods themselves name their queue."""
    cluster = place.cluster.name
    ways = [()] if job.kind is POD else list(template_ways(job.content, job.kind))
    for way in ways:
        if place.scheduling.backend == "volcano":
            yield Injected((*way, "spec", "schedulerName"), _VOLCANO, "Volcano places it")
            yield Injected((*way, "metadata", "annotations", QUEUE_NOTE), cluster, to)
        elif place.scheduling.backend == "hived" and asks_hived(job.content, way):
            yield Injected((*way, "spec", "schedulerName"), f"{SCHEDULER}{cluster}", to)
        yield Injected((*way, "spec", "priorityClassName"), place.priority, rank)


def asks_hived(content: Mapping[str, Any], way: YamlPath) -> bool:
    """Whether the pods of a template are HiveD's to place; others have no devices."""
    template: Any = content
    for key in way:
        template = template[key]
    return MARKER in asked_by_pod(child(template, "spec"))


def _contradict(document: Document, wanted: Iterator[Injected]) -> None:
    for one in wanted:
        found = document.at(one.path)
        if isinstance(found, Text) and str(found) not in ("", one.value):
            message = f"{short(str(found))} is written here, but {one.why}"
            document.add(one.path, "site.contradiction", message, f"remove it: it is set to {one.value}")


def _with(content: Mapping[str, Any], wanted: Iterator[Injected]) -> Object:
    made: Object = deepcopy(dict(content))
    for one in wanted:
        holder: Any = made
        for key in one.path[:-1]:
            if isinstance(key, str) and holder.get(key) is None:
                holder[key] = {}
            holder = holder[key]
        holder[one.path[-1]] = one.value
    return made
