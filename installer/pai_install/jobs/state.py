"""Objects of the cluster -> how jobs stand, in words. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pai_install.cluster.objects import Condition, JsonObject, child, conditions, number, rows, text, words
from pai_install.jobs.compile import jobset, names, volcano
from pai_install.scheduling.model import Backend

State = Literal["WAITING", "STARTING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPING"]
STATES: tuple[State, ...] = ("WAITING", "STARTING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPING")
ENDED: frozenset[State] = frozenset({"SUCCEEDED", "FAILED"})
CONTAINER = "main"

PODS = "pods"
_WORKLOADS = "workloads.kueue.x-k8s.io"
_POD_GROUPS = "podgroups.scheduling.volcano.sh"
_INDEXES = ("batch.kubernetes.io/job-completion-index", "volcano.sh/task-index")
_POD_STATES: Mapping[str, State] = {"Running": "RUNNING", "Succeeded": "SUCCEEDED", "Failed": "FAILED"}


@dataclass(frozen=True, slots=True)
class Instance:
    """One pod of a role. machine: empty before it has one. exit_code: None while it runs. why: what it waits for."""

    role: str
    index: int
    pod: str
    state: State
    machine: str = ""
    exit_code: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class RoleState:
    """A role, and the pods that it has now, the newest of each number. name: as the user wrote it."""

    name: str
    wanted: int
    gpus: int
    instances: tuple[Instance, ...]


@dataclass(frozen=True, slots=True)
class JobState:
    """How a job stands. label: its name in Kubernetes. why: what it waits for, or why it failed. retries: so far."""

    name: str
    label: str
    namespace: str
    group: str
    user: str
    cluster: str
    priority: str
    state: State
    why: str
    retries: int
    created: str
    roles: tuple[RoleState, ...]

    @property
    def instances(self) -> tuple[Instance, ...]:
        """Of all roles."""
        return tuple(one for role in self.roles for one in role.instances)


@dataclass(frozen=True, slots=True)
class _Standing:
    """What the scheduler's own objects say. ended: empty while they do not."""

    ended: State | None
    why: str
    retries: int


def job_kind(backend: Backend) -> str:
    """The kind of a job's own object, as kubectl names it."""
    return volcano.KIND if backend == "volcano" else jobset.KIND


def said_by(backend: Backend) -> str:
    """The kind of the objects that say why a job waits; empty where none do."""
    return {"kueue": _WORKLOADS, "volcano": _POD_GROUPS}.get(backend, "")


def states_of(
    backend: Backend, jobs: Iterable[JsonObject], pods: Iterable[JsonObject], said: Iterable[JsonObject]
) -> tuple[JobState, ...]:
    """How jobs stand, the oldest first. said: objects of the kind `said_by`."""
    pods, said = list(pods), list(said)
    found = (_state(_STANDINGS.get(backend, _job_set), job, pods, said) for job in jobs)
    return tuple(sorted(found, key=lambda one: (one.created, one.namespace, one.label)))


def _state(
    standing: Callable[[JsonObject, Sequence[JsonObject]], _Standing],
    job: JsonObject,
    pods: Sequence[JsonObject],
    said: Sequence[JsonObject],
) -> JobState:
    metadata = child(job, "metadata")
    marks, notes, label = words(metadata.get("labels")), words(metadata.get("annotations")), _name(job)
    own = [pod for pod in pods if _space(pod) == _space(job) and _marks(pod).get(names.JOB) == label]
    roles = tuple(_roles(notes, own))
    found = standing(job, [one for one in said if _space(one) == _space(job) and _owned(one, label)])
    state = _of_pods(roles) if found.ended is None else found.ended
    if "deletionTimestamp" in metadata:
        state = "STOPPING"
    waits = next((one.why for role in roles for one in role.instances if one.why), "")
    return JobState(
        name=notes.get(names.JOB_NAME, label),
        label=label,
        namespace=_space(job),
        group=marks.get(names.GROUP, ""),
        user=marks.get(names.USER, ""),
        cluster=marks.get(names.CLUSTER, ""),
        priority=notes.get(names.PRIORITY, ""),
        state=state,
        why=found.why or (waits if state in {"WAITING", "STARTING"} else ""),
        retries=found.retries,
        created=text(metadata.get("creationTimestamp")),
        roles=roles,
    )


def _of_pods(roles: Sequence[RoleState]) -> State:
    """Of a job that has not ended: it runs once all of its pods have started."""
    states = [one.state for role in roles for one in role.instances]
    if not any(one.machine for role in roles for one in role.instances):
        return "WAITING"
    whole = len(states) == sum(role.wanted for role in roles)
    return "RUNNING" if whole and not {"WAITING", "STARTING"} & set(states) else "STARTING"


def _roles(notes: Mapping[str, str], pods: Sequence[JsonObject]) -> Iterator[RoleState]:
    for label, about in _asked(notes.get(names.ROLES, "")).items():
        newest: dict[int, Instance] = {}
        mine = [pod for pod in pods if _marks(pod).get(names.ROLE) == label]
        for pod in sorted(mine, key=lambda one: text(child(one, "metadata").get("creationTimestamp"))):
            instance = _instance(text(about.get("name")) or label, pod)
            newest[instance.index] = instance
        wanted, gpus = (number(about.get(key)) or 0 for key in ("instances", "gpus"))
        found = tuple(newest[index] for index in sorted(newest))
        yield RoleState(text(about.get("name")) or label, wanted, gpus, found)


def _asked(note: str) -> Mapping[str, JsonObject]:
    """Role -> name, instances, devices, as it was submitted."""
    try:
        found = json.loads(note or "{}")
    except ValueError:
        return {}
    return {str(name): child(found, name) for name in found} if isinstance(found, Mapping) else {}


def _instance(role: str, pod: JsonObject) -> Instance:
    status, marks = child(pod, "status"), _marks(pod)
    index = next((marks[key] for key in _INDEXES if marks.get(key, "").isdigit()), "0")
    machine = text(child(pod, "spec").get("nodeName"))
    phase = text(status.get("phase"))
    containers = [row for row in rows(status.get("containerStatuses")) if row.get("name") == CONTAINER]
    state: JsonObject = child(containers[0], "state") if containers else {}
    ended = child(state, "terminated")
    failed = phase == "Failed" or bool(ended.get("exitCode"))
    standing = "FAILED" if failed else _POD_STATES.get(phase, "STARTING" if machine else "WAITING")
    return Instance(
        role,
        int(index),
        _name(pod),
        standing,
        machine,
        number(ended.get("exitCode")),
        _why(status, state) if standing in {"WAITING", "STARTING", "FAILED"} else "",
    )


def _why(status: JsonObject, state: JsonObject) -> str:
    """What the pod waits for, or what ended it beside its own exit code."""
    ended = child(state, "terminated")
    if ended:
        reason = text(ended.get("reason"))
        return "" if reason in {"Error", "Completed"} else reason
    waiting = child(state, "waiting")
    unplaced = [one.message for one in conditions(status.get("conditions")) if one.status == "False" and one.message]
    own = f"{text(status.get('reason'))} {text(status.get('message'))}".strip()
    said = f"{text(waiting.get('reason'))} {text(waiting.get('message'))}".strip()
    return (own or (said if said != "ContainerCreating" else "") or next(iter(unplaced), ""))[:400]


def _job_set(job: JsonObject, said: Sequence[JsonObject]) -> _Standing:
    status = child(job, "status")
    found = conditions(status.get("conditions"))
    retries = number(status.get("restarts")) or 0
    failed = _holding(found, "Failed")
    if failed is not None:
        return _Standing("FAILED", failed.message or failed.reason, retries)
    if _holding(found, "Completed") is not None:
        return _Standing("SUCCEEDED", "", retries)
    return _Standing(None, _kueue_says(said), retries)


def _kueue_says(workloads: Sequence[JsonObject]) -> str:
    """Why Kueue does not let it start, and why it stopped it, where it did."""
    found = [one for workload in workloads for one in conditions(child(workload, "status").get("conditions"))]
    if _holding(found, "QuotaReserved") is not None:
        return ""
    waits = next((one.message for one in found if one.type == "QuotaReserved"), "")
    stopped = _holding(found, "Evicted")
    parts = (f"was stopped: {stopped.message}" if stopped else "", f"waits for quota: {waits}" if waits else "")
    return "; ".join(filter(None, parts))


def _volcano(job: JsonObject, said: Sequence[JsonObject]) -> _Standing:
    status = child(job, "status")
    state = child(status, "state")
    phase, message = text(state.get("phase")), text(state.get("message"))
    retries = number(status.get("retryCount")) or 0
    if phase in {"Completed", "Failed", "Aborted", "Terminated"}:
        good = phase == "Completed"
        return _Standing("SUCCEEDED" if good else "FAILED", "" if good else message or phase, retries)
    found = [one for group in said for one in conditions(child(group, "status").get("conditions"))]
    waits = _holding(found, "Unschedulable") if phase in {"", "Pending"} else None
    return _Standing(None, f"waits for room: {waits.message}" if waits else "", retries)


_STANDINGS: Mapping[Backend, Callable[[JsonObject, Sequence[JsonObject]], _Standing]] = {"volcano": _volcano}


def _holding(found: Iterable[Condition], kind: str) -> Condition | None:
    return next((one for one in found if one.type == kind and one.status == "True"), None)


def _owned(item: JsonObject, name: str) -> bool:
    return any(row.get("name") == name for row in rows(child(item, "metadata").get("ownerReferences")))


def _name(item: JsonObject) -> str:
    return text(child(item, "metadata").get("name"))


def _space(item: JsonObject) -> str:
    return text(child(item, "metadata").get("namespace"))


def _marks(item: JsonObject) -> dict[str, Any]:
    return dict(words(child(item, "metadata").get("labels")))
