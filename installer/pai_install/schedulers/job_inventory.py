"""Jobs that a scheduler keeps, and what is left of those that ended: what must be gone before it can go. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pai_install.kube.objects import JsonObject, child, rows, text, words
from pai_install.schedulers.self_test.model import is_place
from pai_install.scheduling.job_kinds import JOBSET
from pai_install.scheduling.job_queue import queue_of
from pai_install.scheduling.usage.pods import alive

State = Literal["runs", "waits", "has ended"]
Answers = Mapping[str, Iterable[JsonObject]]

JOBSETS = "jobsets.jobset.x-k8s.io"
_SHOWN = 20
_JOBSET_LABEL = "jobset.sigs.k8s.io/jobset-name"


@dataclass(frozen=True, slots=True)
class BlockingJob:
    """What keeps a scheduler from going: a job, or what is left of one. Its names are those of the object to delete.

    cluster: the virtual cluster, "" where the job names none.
    """

    kind: str
    group: str
    namespace: str
    name: str
    state: State
    cluster: str = ""

    @property
    def ended(self) -> bool:
        """Whether it needs no machine any longer."""
        return self.state == "has ended"

    def __str__(self) -> str:
        cluster = f" of virtual cluster {self.cluster}" if self.cluster else ""
        return f"{self.kind} {self.namespace}/{self.name}{cluster} {self.state}"


def _jobset_state(jobset: JsonObject) -> State:
    if text(child(jobset, "status").get("terminalState")):
        return "has ended"
    return "waits" if child(jobset, "spec").get("suspend") is True else "runs"


def jobsets(found: Answers) -> Iterator[BlockingJob]:
    """JobSets among the answers."""
    return (kept_job(jobset, _jobset_state(jobset), _named(jobset)) for jobset in found[JOBSETS])


def _named(jobset: JsonObject) -> str:
    return queue_of(jobset, JOBSET).cluster


def pods_beside_jobsets(found: Answers) -> Iterator[JsonObject]:
    """Pods that have not ended and are in no JobSet."""
    known = {_place(jobset) for jobset in found[JOBSETS]}
    for pod in alive(found["pods"]):
        namespace, _name = _place(pod)
        if (namespace, words(child(pod, "metadata").get("labels")).get(_JOBSET_LABEL, "")) not in known:
            yield pod


def _place(item: JsonObject) -> tuple[str, str]:
    metadata = child(item, "metadata")
    return text(metadata.get("namespace")), text(metadata.get("name"))


def owners_of(item: JsonObject) -> list[JsonObject]:
    """Owner references of an object."""
    return list(rows(child(item, "metadata").get("ownerReferences")))


def owner_job(item: JsonObject, state: State, cluster: str = "") -> BlockingJob:
    """What made an object, as that would make it again; the object itself where nothing did."""
    # Deleting a pod of a controller is of no use: the controller makes it again.
    made_by = next((row for row in owners_of(item) if row.get("controller")), None) or next(iter(owners_of(item)), None)
    if made_by is None:
        return kept_job(item, state, cluster)
    namespace = text(child(item, "metadata").get("namespace"))
    return BlockingJob(text(made_by.get("kind")), _group(made_by), namespace, text(made_by.get("name")), state, cluster)


def kept_job(item: JsonObject, state: State, cluster: str = "") -> BlockingJob:
    """The object itself, as a job."""
    return BlockingJob(text(item.get("kind")), _group(item), *_place(item), state, cluster)


def _group(item: JsonObject) -> str:
    group, slash, _version = text(item.get("apiVersion")).partition("/")
    return group if slash else ""


def busy_jobs(jobs: Iterable[BlockingJob]) -> tuple[BlockingJob, ...]:
    """Returns the jobs that run or wait. Jobs of the self-test are deleted with their namespaces."""
    return tuple(job for job in jobs if not job.ended and not is_place(job.namespace))


def listed(jobs: Sequence[BlockingJob]) -> str:
    """A line for each, and the number of further ones."""
    more = [f"and {len(jobs) - _SHOWN} more"] if len(jobs) > _SHOWN else []
    return "\n".join([*map(str, jobs[:_SHOWN]), *more])


def in_order(jobs: Iterable[BlockingJob]) -> tuple[BlockingJob, ...]:
    """Every one once, those that run first."""
    found: dict[tuple[str, ...], BlockingJob] = {}
    for job in jobs:
        found.setdefault((job.kind, job.group, job.namespace, job.name), job)
    order: tuple[State, ...] = ("runs", "waits", "has ended")
    return tuple(sorted(found.values(), key=lambda job: (order.index(job.state), job.namespace, job.name)))
