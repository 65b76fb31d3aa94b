"""Fields of submitted jobs: those that put a job into its queue, and those that pass it by. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pai_install.documents.document import Text
from pai_install.documents.problem import Severity, YamlPath
from pai_install.jobs.kubernetes import KubernetesJob
from pai_install.jobs.place import JobPlace
from pai_install.scheduling.job_kinds import POD, template_ways
from pai_install.scheduling.unqueued import CLASS, is_limited


@dataclass(frozen=True, slots=True)
class JobField:
    """A field that an object gets: its value at `path`. reason: the cause, in words. queue: the field names a queue."""

    path: YamlPath
    value: str
    reason: str
    queue: bool = False


@dataclass(frozen=True, slots=True)
class SubmittedPod:
    """A pod specification of a job, at `path` of its document. devices: where its containers request devices."""

    job: KubernetesJob
    place: JobPlace
    path: YamlPath
    devices: tuple[YamlPath, ...]

    def text(self, path: YamlPath) -> str:
        """The text at a path of the document, empty without any."""
        found = self.job.document.at(path)
        return str(found).strip() if isinstance(found, Text) else ""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """A field that the scheduler does not permit."""

    path: YamlPath
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class FieldMisfit:
    """Why a job of OpenPAI's can never start, or an option that has no effect. at: a key of JobReading.places."""

    at: str
    message: str
    remedy: str
    severity: Severity = "error"


def queue_field(path: YamlPath, place: JobPlace, prefix: str = "") -> JobField:
    """The field that names the virtual cluster of the job. prefix: of the value."""
    name = place.cluster.name
    return JobField(path, f"{prefix}{name}", f"the job goes to the virtual cluster {name}", queue=True)


def priority_reason(place: JobPlace) -> tuple[str, str]:
    """The priority, and why the job has it."""
    return place.priority, f"its priority is {place.priority}"


def priority_field(way: YamlPath, place: JobPlace, *, outside: bool) -> JobField:
    """The class of the pods at a way. outside: no queue counts them, so a limit of the site counts their class."""
    path = (*way, "spec", "priorityClassName")
    if outside and is_limited(place.scheduling, place.owner.namespace):
        return JobField(path, CLASS, "its pods are outside queues, and the site has a limit for such pods")
    return JobField(path, *priority_reason(place))


def pod_ways(job: KubernetesJob) -> list[YamlPath]:
    """The way to each pod of a job; a pod is its own."""
    return [()] if job.kind is POD else list(template_ways(job.content, job.kind))
