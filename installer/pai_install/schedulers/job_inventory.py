"""Jobs that a scheduler keeps, and what is left of those that ended: what must be gone before it can go. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pai_install.kube.objects import JsonObject, child, conditions, rows, state_of, text, words
from pai_install.schedulers.hived.policies import SCHEDULER
from pai_install.schedulers.simulate.manifest import named_by
from pai_install.scheduling.job_kinds import JOBSET
from pai_install.scheduling.model import Backend
from pai_install.scheduling.usage.amounts import asked_by_pod
from pai_install.scheduling.usage.pods import alive, node_of

State = Literal["runs", "waits", "has ended"]
_Answers = Mapping[str, Iterable[JsonObject]]

_WORKLOADS, _JOBSETS = "workloads.kueue.x-k8s.io", "jobsets.jobset.x-k8s.io"
_VOLCANO_JOBS, _POD_GROUPS = "jobs.batch.volcano.sh", "podgroups.scheduling.volcano.sh"
_VOLCANO_GROUP = "batch.volcano.sh/"
_JOBSET_LABEL = "jobset.sigs.k8s.io/jobset-name"
_ENDED_PHASES = ("Completed", "Failed", "Aborted", "Terminated")
_WAITING_PHASES = ("", "Pending", "Inqueue")


@dataclass(frozen=True, slots=True)
class KeptJob:
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


@dataclass(frozen=True, slots=True)
class _Reader:
    kinds: tuple[str, ...]
    jobs: Callable[[_Answers, Collection[str]], Iterator[KeptJob]]


def kinds_of(backend: Backend) -> tuple[str, ...]:
    """What to ask the cluster for, as kubectl names it, in all namespaces; a kind that it does not know has no job."""
    return _READERS[backend].kinds


def jobs_of(backend: Backend, answers: Sequence[Iterable[JsonObject]], devices: Collection[str]) -> tuple[KeptJob, ...]:
    """Every one once, those that run first. answers: the objects of each of `kinds_of`. devices: their resources."""
    reader = _READERS[backend]
    found: dict[tuple[str, ...], KeptJob] = {}
    for job in reader.jobs(dict(zip(reader.kinds, answers, strict=True)), devices):
        found.setdefault((job.kind, job.group, job.namespace, job.name), job)
    order: tuple[State, ...] = ("runs", "waits", "has ended")
    return tuple(sorted(found.values(), key=lambda job: (order.index(job.state), job.namespace, job.name)))


def _kueue(found: _Answers, devices: Collection[str]) -> Iterator[KeptJob]:
    """A Workload stands for its job. A JobSet without one is a job, too: its kind goes with the scheduler."""
    del devices
    for workload in found[_WORKLOADS]:
        status = child(workload, "status")
        states = conditions(status.get("conditions"))
        cluster = text(child(status, "admission").get("clusterQueue")) or text(child(workload, "spec").get("queueName"))
        if state_of(states, "Finished") is True:
            yield _of(workload, "has ended", cluster)
        else:
            state: State = "runs" if state_of(states, "QuotaReserved") is True else "waits"
            yield _owner(workload, state, cluster)
    yield from _jobsets(found)


def _jobset_state(jobset: JsonObject) -> State:
    if text(child(jobset, "status").get("terminalState")):
        return "has ended"
    return "waits" if child(jobset, "spec").get("suspend") is True else "runs"


def _volcano(found: _Answers, devices: Collection[str]) -> Iterator[KeptJob]:
    """Volcano's Jobs, and groups of pods that another controller made."""
    del devices
    for job in found[_VOLCANO_JOBS]:
        phase = text(child(job, "status", "state").get("phase"))
        state: State = "has ended" if phase in _ENDED_PHASES else _placed(phase)
        yield _of(job, state, text(child(job, "spec").get("queue")))
    for group in found[_POD_GROUPS]:
        if any(text(row.get("apiVersion")).startswith(_VOLCANO_GROUP) for row in _owners(group)):
            continue
        phase, queue = text(child(group, "status").get("phase")), text(child(group, "spec").get("queue"))
        yield _of(group, "has ended", queue) if phase == "Completed" else _owner(group, _placed(phase), queue)


def _placed(phase: str) -> State:
    return "waits" if phase in _WAITING_PHASES else "runs"


def _hived(found: _Answers, devices: Collection[str]) -> Iterator[KeptJob]:
    """Pods, but for those of a JobSet, which stands for them: its kind may go with the scheduler."""
    del devices
    yield from _jobsets(found)
    for pod in _beside_jobsets(found):
        scheduler = text(child(pod, "spec").get("schedulerName"))
        if scheduler.startswith(SCHEDULER):
            yield _owner(pod, "runs" if node_of(pod) else "waits", scheduler.removeprefix(SCHEDULER))


def _default(found: _Answers, devices: Collection[str]) -> Iterator[KeptJob]:
    """JobSets, and pods that ask for devices: no other scheduler would know of them."""
    yield from _jobsets(found)
    for pod in _beside_jobsets(found):
        asked = asked_by_pod(child(pod, "spec"))
        if any(asked.get(name) for name in devices):
            yield _owner(pod, "runs" if node_of(pod) else "waits")


def _jobsets(found: _Answers) -> Iterator[KeptJob]:
    return (_of(jobset, _jobset_state(jobset), _named(jobset)) for jobset in found[_JOBSETS])


def _named(jobset: JsonObject) -> str:
    return text(named_by(jobset, JOBSET)["cluster"])


def _beside_jobsets(found: _Answers) -> Iterator[JsonObject]:
    known = {_place(jobset) for jobset in found[_JOBSETS]}
    for pod in alive(found["pods"]):
        namespace, _name = _place(pod)
        if (namespace, words(child(pod, "metadata").get("labels")).get(_JOBSET_LABEL, "")) not in known:
            yield pod


def _place(item: JsonObject) -> tuple[str, str]:
    metadata = child(item, "metadata")
    return text(metadata.get("namespace")), text(metadata.get("name"))


def _owners(item: JsonObject) -> list[JsonObject]:
    return list(rows(child(item, "metadata").get("ownerReferences")))


def _owner(item: JsonObject, state: State, cluster: str = "") -> KeptJob:
    """What made an object, as that would make it again; the object itself where nothing did."""
    made_by = next((row for row in _owners(item) if row.get("controller")), None) or next(iter(_owners(item)), None)
    if made_by is None:
        return _of(item, state, cluster)
    namespace = text(child(item, "metadata").get("namespace"))
    return KeptJob(text(made_by.get("kind")), _group(made_by), namespace, text(made_by.get("name")), state, cluster)


def _of(item: JsonObject, state: State, cluster: str = "") -> KeptJob:
    return KeptJob(text(item.get("kind")), _group(item), *_place(item), state, cluster)


def _group(item: JsonObject) -> str:
    group, slash, _version = text(item.get("apiVersion")).partition("/")
    return group if slash else ""


_READERS: Mapping[Backend, _Reader] = {
    "kueue": _Reader((_WORKLOADS, _JOBSETS), _kueue),
    "volcano": _Reader((_VOLCANO_JOBS, _POD_GROUPS), _volcano),
    "hived": _Reader(("pods", _JOBSETS), _hived),
    "default": _Reader(("pods", _JOBSETS), _default),
}
