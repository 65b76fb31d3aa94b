"""Objects of the cluster -> how jobs stand, in words. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pai_install.cluster.objects import Condition, JsonObject, child, conditions, number, rows, text, words
from pai_install.jobs.compile import names
from pai_install.jobs.use import PodUse, use_of
from pai_install.scheduling.hived_policies import MARKER
from pai_install.scheduling.kinds import JobKind, kind_of
from pai_install.scheduling.model import Backend
from pai_install.scheduling.simulate.manifest import named_by
from pai_install.scheduling.usage.amounts import asked_by_pod
from pai_install.site.use_limits import NOTEBOOK_LABEL, WARNED

State = Literal["WAITING", "STARTING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPING", "STOPPED"]
STATES: tuple[State, ...] = ("WAITING", "STARTING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPING", "STOPPED")
ENDED: frozenset[State] = frozenset({"SUCCEEDED", "FAILED"})

PODS = "pods"
_WORKLOADS = "workloads.kueue.x-k8s.io"
_POD_GROUPS = "podgroups.scheduling.volcano.sh"
_POD_STATES: Mapping[str, State] = {"Running": "RUNNING", "Succeeded": "SUCCEEDED", "Failed": "FAILED"}


@dataclass(frozen=True, slots=True)
class Instance:
    """One pod of a role. machine: empty before it has one. exit_code: None while it runs. why: what it waits for.

    gone: the pod is no longer there; this is how it stood. started: when its machine took it. use: of its GPUs; None
    where its machine tells nothing of it.
    """

    role: str
    index: int
    pod: str
    state: State
    machine: str = ""
    exit_code: int | None = None
    why: str = ""
    gone: bool = False
    started: str = ""
    use: PodUse | None = None


@dataclass(frozen=True, slots=True)
class RoleState:
    """A role, and the pods that it has now, the newest of each number. name: as the user wrote it.

    wanted: how many there will have been when all have ended. together: how many of these there are at once.
    """

    name: str
    wanted: int
    gpus: int
    instances: tuple[Instance, ...]
    together: int

    @property
    def holders(self) -> tuple[Instance, ...]:
        """Those that have what they asked for: what has ended has nothing."""
        return tuple(one for one in self.instances if one.state not in ENDED and not one.gone)

    @property
    def is_whole(self) -> bool:
        """Whether all are there that can be, now that some may have ended."""
        ended = sum(one.state in ENDED for one in self.instances)
        return len(self.instances) - ended >= min(self.together, self.wanted - ended)


@dataclass(frozen=True, slots=True)
class JobState:
    """How a job stands. label: its name in Kubernetes. why: what it waits for, or why it failed. retries: so far.

    gone: since when its object is no longer there, and this is what was kept of it; empty while it is there.
    stopped_by, stopped_why: who ended it and why, where they said so. abnormal: why an administrator should look at it.
    notebook: whether it says that it is one. warned: what it is told of its GPUs, which it has for nothing.
    """

    kind: JobKind
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
    uid: str = ""
    gone: str = ""
    stopped_by: str = ""
    stopped_why: str = ""
    abnormal: str = ""
    notebook: bool = False
    warned: str = ""

    @property
    def instances(self) -> tuple[Instance, ...]:
        """Of all roles."""
        return tuple(one for role in self.roles for one in role.instances)

    @property
    def holders(self) -> tuple[Instance, ...]:
        """Those that have GPUs."""
        return tuple(one for role in self.roles if role.gpus for one in role.holders)


@dataclass(frozen=True, slots=True)
class _Standing:
    """What the scheduler's own objects say. ended: empty while they do not."""

    ended: State | None
    why: str
    retries: int


def said_by(backend: Backend) -> str:
    """The kind of the objects that say why a job waits; empty where none do."""
    return {"kueue": _WORKLOADS, "volcano": _POD_GROUPS}.get(backend, "")


def states_of(
    jobs: Iterable[JsonObject], pods: Iterable[JsonObject], said: Iterable[JsonObject]
) -> tuple[JobState, ...]:
    """How jobs stand, the oldest first; a pod that nothing made is one, too. said: objects of the kind `said_by`."""
    pods, said = list(pods), list(said)
    found = (_state(job, kind, pods, said) for job in [*jobs, *pods] if not _made(job) and (kind := kind_of(job)))
    return tuple(sorted(found, key=lambda one: (one.created, one.namespace, one.label)))


def _made(item: JsonObject) -> bool:
    """Whether it is a part of something else, such as the Jobs of a JobSet."""
    return any(row.get("controller") for row in rows(child(item, "metadata").get("ownerReferences")))


def _state(job: JsonObject, kind: JobKind, pods: Sequence[JsonObject], said: Sequence[JsonObject]) -> JobState:
    metadata = child(job, "metadata")
    marks, notes, label = words(metadata.get("labels")), words(metadata.get("annotations")), _name(job)
    here = [pod for pod in pods if _space(pod) == _space(job)]
    own = [pod for pod in here if _is_of(pod, kind, label, marks.get(names.USER))] if kind.marks else [job]
    roles = tuple(_roles(job, kind, own))
    found = _STANDINGS[kind.group](job, [one for one in said if _space(one) == _space(job) and _owned(one, job)])
    state = _of_pods(roles) if found.ended is None else found.ended
    if "deletionTimestamp" in metadata:
        state = "STOPPING"
    named = named_by(job, kind)
    return JobState(
        kind=kind,
        name=notes.get(names.JOB_NAME, label),
        label=label,
        namespace=_space(job),
        group=marks.get(names.GROUP, ""),
        user=marks.get(names.USER, ""),
        cluster=marks.get(names.CLUSTER, named["cluster"]),
        priority=notes.get(names.PRIORITY, named["priority"]),
        state=state,
        why=_why_all(found.why, roles, state),
        retries=found.retries,
        created=text(metadata.get("creationTimestamp")),
        roles=roles,
        uid=text(metadata.get("uid")),
        stopped_by=notes.get(names.STOPPED_BY, ""),
        stopped_why=notes.get(names.STOPPED_WHY, ""),
        notebook=marks.get(NOTEBOOK_LABEL) == "true",
        warned=_told(notes.get(WARNED, "")),
    )


def _why_all(said: str, roles: Sequence[RoleState], state: State) -> str:
    """What its scheduler says, else its pods. What stopped it because of a lost machine does not say which: they do."""
    found = [one for role in roles for one in role.instances if one.why]
    if said:
        leaves = [one.why for one in found if one.state == "STOPPING"]
        return "; ".join([*leaves[:1], said])
    return found[0].why if found and state in {"WAITING", "STARTING", "RUNNING"} else ""


def _of_pods(roles: Sequence[RoleState]) -> State:
    """Of a job that has not ended: it runs once all of its pods have started."""
    states = [one.state for role in roles for one in role.instances]
    if not any(one.machine for role in roles for one in role.instances):
        return "WAITING"
    whole = all(role.is_whole for role in roles)
    return "RUNNING" if whole and not {"WAITING", "STARTING", "STOPPING"} & set(states) else "STARTING"


def _roles(job: JsonObject, kind: JobKind, pods: Sequence[JsonObject]) -> Iterator[RoleState]:
    """By what the object asks for; names are those of the user's file, where that had others."""
    asked = _asked(words(child(job, "metadata").get("annotations")).get(names.ROLES, ""))
    for part in kind.parts(job):
        about = child(asked, part.role)
        name = text(about.get("name")) or part.role or kind.name.lower()
        mine = [pod for pod in pods if not part.role or _role_of(pod, kind) == part.role]
        mine.sort(key=lambda one: text(child(one, "metadata").get("creationTimestamp")))
        newest: dict[int, Instance] = {}
        for order, pod in enumerate(mine):
            index = _index(pod, kind, part.each, order)
            newest[index] = _instance(name, index, pod)
        gpus = number(about.get("gpus"))
        found = tuple(newest[index] for index in sorted(newest))
        devices = _devices(part.template) if gpus is None else gpus
        yield RoleState(name, part.total, devices, found, part.count)


def _is_of(pod: JsonObject, kind: JobKind, label: str, user: str | None) -> bool:
    """Whether it is a pod of this job. A member of the group may name another's job, but no other user."""
    marks = _marks(pod)
    return kind.marks is not None and marks.get(kind.marks.job) == label and marks.get(names.USER) == user


def _role_of(pod: JsonObject, kind: JobKind) -> str:
    return str(_marks(pod).get(kind.marks.role, "")) if kind.marks else ""


def _index(pod: JsonObject, kind: JobKind, each: int, order: int) -> int:
    """The number of a pod in its role; without one, its turn."""
    found = [_marks(pod).get(key, "") for key in (kind.marks.numbers if kind.marks else ())]
    if not found or not found[-1].isdigit():
        return order
    before = int(found[0]) if len(found) > 1 and found[0].isdigit() else 0
    return before * each + int(found[-1])


def _devices(template: JsonObject) -> int:
    """What a pod asks for that a device plugin gives."""
    asked = asked_by_pod(child(template, "spec"))
    return int(sum(amount for name, amount in asked.items() if "/" in name and name != MARKER))


def _asked(note: str) -> Mapping[str, JsonObject]:
    """Role -> name, instances, devices, as it was submitted."""
    try:
        found = json.loads(note or "{}")
    except ValueError:
        return {}
    return {str(name): child(found, name) for name in found} if isinstance(found, Mapping) else {}


def _told(note: str) -> str:
    """What the recorder's note of a warning says."""
    try:
        found = json.loads(note or "{}")
    except ValueError:
        return ""
    return text(found.get("says")) if isinstance(found, Mapping) else ""


def _instance(role: str, index: int, pod: JsonObject) -> Instance:
    status = child(pod, "status")
    machine = text(child(pod, "spec").get("nodeName"))
    phase = text(status.get("phase"))
    state = child(_container(pod), "state")
    ended = child(state, "terminated")
    failed = phase == "Failed" or bool(ended.get("exitCode"))
    standing = "FAILED" if failed else _POD_STATES.get(phase, "STARTING" if machine else "WAITING")
    if standing in {"RUNNING", "STARTING"} and "deletionTimestamp" in child(pod, "metadata"):
        standing = "STOPPING"
    return Instance(
        role,
        index,
        _name(pod),
        standing,
        machine,
        number(ended.get("exitCode")),
        _why(status, state) if standing in {"WAITING", "STARTING", "FAILED"} else _unwell(status, machine),
        started=text(status.get("startTime")),
        use=use_of(pod),
    )


def _unwell(status: JsonObject, machine: str) -> str:
    """Why a pod that runs may not run much longer."""
    found = conditions(status.get("conditions"))
    taken = _holding(found, "DisruptionTarget")
    if taken is not None:
        return f"taken off {machine}: {taken.message or taken.reason}"[:400]
    # what the kubelet said last is that all is well, and the cluster knows better
    well = all(row.get("ready") is True for row in rows(status.get("containerStatuses")))
    unready = any(one.type == "Ready" and one.status == "False" for one in found)
    return f"{machine} has not reported for a while" if well and unready and status.get("phase") == "Running" else ""


def _container(pod: JsonObject) -> JsonObject:
    """How the first container of the pod stands, which is the job's; others go beside it."""
    name = next((row.get("name") for row in rows(child(pod, "spec").get("containers"))), None)
    states = rows(child(pod, "status").get("containerStatuses"))
    return next((row for row in states if name in (None, row.get("name"))), {})


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
    asked = [one for one in workloads if one.get("kind") == "Workload"]
    found = [one for workload in asked for one in conditions(child(workload, "status").get("conditions"))]
    if _holding(found, "QuotaReserved") is not None:
        return ""
    waits = next((one.message for one in found if one.type == "QuotaReserved"), "")
    stopped = _holding(found, "Evicted")
    parts = (f"was stopped: {stopped.message}" if stopped else "", f"waits for quota: {waits}" if waits else "")
    return "; ".join(filter(None, parts))


def _job(job: JsonObject, said: Sequence[JsonObject]) -> _Standing:
    """A batch Job, or one of Kubeflow's."""
    found = conditions(child(job, "status").get("conditions"))
    failed = _holding(found, "Failed")
    if failed is not None:
        return _Standing("FAILED", failed.message or failed.reason, 0)
    if _holding(found, "Complete") is not None or _holding(found, "Succeeded") is not None:
        return _Standing("SUCCEEDED", "", 0)
    return _Standing(None, _kueue_says(said) or _volcano_says(said), 0)


def _pod(job: JsonObject, said: Sequence[JsonObject]) -> _Standing:
    status = child(job, "status")
    state = _POD_STATES.get(text(status.get("phase")))
    if state not in ENDED:
        return _Standing(None, _volcano_says(said), 0)
    return _Standing(state, _why(status, child(_container(job), "state")) if state == "FAILED" else "", 0)


def _volcano(job: JsonObject, said: Sequence[JsonObject]) -> _Standing:
    status = child(job, "status")
    state = child(status, "state")
    phase, message = text(state.get("phase")), text(state.get("message"))
    retries = number(status.get("retryCount")) or 0
    if phase in {"Completed", "Failed", "Aborted", "Terminated"}:
        good = phase == "Completed"
        return _Standing("SUCCEEDED" if good else "FAILED", "" if good else message or phase, retries)
    return _Standing(None, _volcano_says(said) if phase in {"", "Pending"} else "", retries)


def _volcano_says(groups: Sequence[JsonObject]) -> str:
    """Why Volcano has no room for it; a group that runs had room."""
    states = [child(group, "status") for group in groups if group.get("kind") == "PodGroup"]
    waiting = [it for it in states if text(it.get("phase")) not in {"Running", "Completed"}]
    waits = _holding([one for it in waiting for one in conditions(it.get("conditions"))], "Unschedulable")
    return f"waits for room: {waits.message}" if waits else ""


# by the group of the kind
_STANDINGS: Mapping[str, Callable[[JsonObject, Sequence[JsonObject]], _Standing]] = {
    "": _pod,
    "batch": _job,
    "jobset.x-k8s.io": _job_set,
    "batch.volcano.sh": _volcano,
    "kubeflow.org": _job,
}


def _holding(found: Iterable[Condition], kind: str) -> Condition | None:
    return next((one for one in found if one.type == kind and one.status == "True"), None)


def _owned(item: JsonObject, job: JsonObject) -> bool:
    owners = rows(child(item, "metadata").get("ownerReferences"))
    return any((row.get("kind"), row.get("name")) == (job.get("kind"), _name(job)) for row in owners)


def _name(item: JsonObject) -> str:
    return text(child(item, "metadata").get("name"))


def _space(item: JsonObject) -> str:
    return text(child(item, "metadata").get("namespace"))


def _marks(item: JsonObject) -> dict[str, Any]:
    return dict(words(child(item, "metadata").get("labels")))
