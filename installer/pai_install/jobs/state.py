"""Objects of the cluster -> states of jobs, as text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pai_install.agents.common.records import Preemption
from pai_install.agents.common.values import InvalidJsonError, parse_object
from pai_install.jobs.compile import names
from pai_install.jobs.pod_status import ENDED, Instance, State, instance_of
from pai_install.jobs.scheduler_status import finished_at, scheduler_status
from pai_install.jobs.warning_events import WarningEvent, newest_warnings, warning_of, warning_of_pod
from pai_install.kube.objects import JsonObject, child, number, rows, text, words
from pai_install.scheduling.job_kinds import JobKind, kind_of
from pai_install.scheduling.job_queue import HIVED_MARKER, queue_of
from pai_install.scheduling.usage.amounts import requests_of_pod
from pai_install.site.use_limits import NOTEBOOK_LABEL, WARNED

PODS = "pods"
_MOST_DIGEST, _MOST_PLACE = 80, 200
# of JSON in annotations
_MAX_DEPTH = 4


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
    def is_running(self) -> bool:
        """Whether all are there and run that can be, now that some may have ended."""
        states = [one.state for one in self.instances]
        run, ended = states.count("RUNNING"), sum(state in ENDED for state in states)
        return run + ended == len(states) and run >= min(self.together, self.wanted - ended)


@dataclass(frozen=True, slots=True)
class JobState:
    """How a job stands. label: its name in Kubernetes. why: what it waits for, or why it failed. retries: so far.

    gone: since when its object is no longer there, and this is what was kept of it; empty while it is there.
    stopped_by, stopped_why: who ended it and why, where they said so. abnormal: why an administrator should look at it.
    notebook: whether it says that it is one. warned: what it is told of its GPUs, which it has for nothing.
    preemptions: losses of its devices that are no failure, the latest last. finished: when it ended, empty while it
    has not. tags: words of users about it. code: `sha256:DIGEST` of its code, empty without code.
    code_place: the annotation with the storage of the code. version: the resource version of its object.
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
    preemptions: tuple[Preemption, ...] = ()
    finished: str = ""
    tags: tuple[str, ...] = ()
    code: str = ""
    code_place: str = ""
    version: str = ""

    @property
    def ended(self) -> bool:
        """Whether nothing of it runs or will run."""
        return bool(self.gone) or self.state in {*ENDED, "STOPPED"}

    @property
    def instances(self) -> tuple[Instance, ...]:
        """Of all roles."""
        return tuple(one for role in self.roles for one in role.instances)

    @property
    def holders(self) -> tuple[Instance, ...]:
        """Those that have GPUs."""
        return tuple(one for role in self.roles if role.gpus for one in role.holders)


def states_of(
    jobs: Iterable[JsonObject],
    pods: Iterable[JsonObject],
    statuses: Iterable[JsonObject],
    events: Iterable[JsonObject] = (),
) -> tuple[JobState, ...]:
    """States of jobs, the oldest first. A pod without an owner is a job, too. statuses: objects of the scheduler.

    events: warnings. They are the reason where neither the scheduler nor a pod has one.
    """
    pods, statuses, warnings = list(pods), list(statuses), newest_warnings(events)
    found = (
        _with_warning(_state(job, kind, pods, statuses, warnings), warning_of(job, warnings))
        for job in [*jobs, *pods]
        if not _made(job) and (kind := kind_of(job))
    )
    return tuple(sorted(found, key=lambda one: (one.created, one.namespace, one.label)))


def _with_warning(job: JobState, warning: str) -> JobState:
    return replace(job, why=warning) if not job.why and job.state in {"WAITING", "STARTING"} else job


def _made(item: JsonObject) -> bool:
    """Whether it is a part of something else, such as the Jobs of a JobSet."""
    return any(row.get("controller") for row in rows(child(item, "metadata").get("ownerReferences")))


def _state(
    job: JsonObject,
    kind: JobKind,
    pods: Sequence[JsonObject],
    statuses: Sequence[JsonObject],
    warnings: Mapping[str, WarningEvent],
) -> JobState:
    metadata = child(job, "metadata")
    marks, notes, label = words(metadata.get("labels")), words(metadata.get("annotations")), _name(job)
    here = [pod for pod in pods if _space(pod) == _space(job)]
    own = [pod for pod in here if _is_of(pod, kind, label, marks.get(names.USER))] if kind.marks else [job]
    roles = tuple(_roles(job, kind, own, warnings))
    found = scheduler_status(job, kind, [one for one in statuses if _space(one) == _space(job) and _owned(one, job)])
    state = _of_pods(roles) if found.ended is None else found.ended
    # A deleted object may wait for its pods. Its status still says that it runs.
    if "deletionTimestamp" in metadata:
        state = "STOPPING"
    named = queue_of(job, kind)
    return JobState(
        kind=kind,
        name=notes.get(names.JOB_NAME, label),
        label=label,
        namespace=_space(job),
        group=marks.get(names.GROUP, ""),
        user=marks.get(names.USER, ""),
        cluster=marks.get(names.CLUSTER, named.cluster),
        priority=notes.get(names.PRIORITY, named.priority),
        state=state,
        why=_why_all(found.why, roles, state),
        retries=found.retries,
        created=text(metadata.get("creationTimestamp")),
        roles=roles,
        uid=text(metadata.get("uid")),
        version=text(metadata.get("resourceVersion")),
        stopped_by=notes.get(names.STOPPED_BY, ""),
        stopped_why=notes.get(names.STOPPED_WHY, ""),
        notebook=marks.get(NOTEBOOK_LABEL) == "true",
        warned=_warning(notes.get(WARNED, "")),
        preemptions=found.preemptions,
        finished=(finished_at(job) or max((one.finished for role in roles for one in role.instances), default=""))
        if state in ENDED
        else "",
        tags=_tags(notes.get(names.TAGS, "")),
        code=notes.get(names.CODE, "")[:_MOST_DIGEST],
        code_place=notes.get(names.CODE_PLACE, "")[:_MOST_PLACE],
    )


def _tags(note: str) -> tuple[str, ...]:
    """The words in the annotation of tags."""
    found = _object_in(note).get("tags")
    return tuple(dict.fromkeys(text(one) for one in found if text(one))) if isinstance(found, list) else ()


def _why_all(statuses: str, roles: Sequence[RoleState], state: State) -> str:
    """What its scheduler says, else its pods. What stopped it because of a lost machine does not say which: they do."""
    found = [one for role in roles for one in role.instances if one.why]
    if statuses:
        leaves = [one.why for one in found if one.state == "STOPPING"]
        return "; ".join([*leaves[:1], statuses])
    return found[0].why if found and state in {"WAITING", "STARTING", "RUNNING"} else ""


def _of_pods(roles: Sequence[RoleState]) -> State:
    """Of a job that has not ended: it runs once all of its pods have started."""
    if not any(one.machine for role in roles for one in role.instances):
        return "WAITING"
    return "RUNNING" if all(role.is_running for role in roles) else "STARTING"


def _roles(
    job: JsonObject, kind: JobKind, pods: Sequence[JsonObject], warnings: Mapping[str, WarningEvent]
) -> Iterator[RoleState]:
    """By what the object asks for; names are those of the user's file, where that had others."""
    requested = _role_requests(words(child(job, "metadata").get("annotations")).get(names.ROLES, ""))
    for part in kind.parts(job):
        about = child(requested, part.role)
        name = text(about.get("name")) or part.role or kind.name.lower()
        own = [pod for pod in pods if not part.role or _role_of(pod, kind) == part.role]
        # A replacement has the number of the pod before it, and the newest counts.
        own.sort(key=lambda one: text(child(one, "metadata").get("creationTimestamp")))
        newest: dict[int, Instance] = {}
        for order, pod in enumerate(own):
            index = _index(pod, kind, part.each, order)
            instance = instance_of(name, index, pod)
            # The kubelet says why a volume does not mount only in an event, and not in the status.
            silent = instance.state == "STARTING" and not instance.why
            newest[index] = replace(instance, why=warning_of_pod(pod, warnings)) if silent else instance
        gpus = number(about.get("gpus"))
        found = tuple(newest[index] for index in sorted(newest))
        devices = max(0, _devices(part.template) if gpus is None else gpus)
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
    requested = requests_of_pod(child(template, "spec"))
    return int(sum(amount for name, amount in requested.items() if "/" in name and name != HIVED_MARKER))


def _role_requests(note: str) -> Mapping[str, JsonObject]:
    """Role -> name, instances, devices, as it was submitted."""
    found = _object_in(note)
    return {name: child(found, name) for name in found}


def _warning(note: str) -> str:
    """The text of a warning by the job recorder."""
    return text(_object_in(note).get("says"))


def _object_in(note: str) -> JsonObject:
    """The JSON object in an annotation; empty for anything else."""
    try:
        return parse_object(note, max_depth=_MAX_DEPTH)
    except InvalidJsonError:
        return {}


def _owned(item: JsonObject, job: JsonObject) -> bool:
    owners = rows(child(item, "metadata").get("ownerReferences"))
    return any((row.get("kind"), row.get("name")) == (job.get("kind"), _name(job)) for row in owners)


def _name(item: JsonObject) -> str:
    return text(child(item, "metadata").get("name"))


def _space(item: JsonObject) -> str:
    return text(child(item, "metadata").get("namespace"))


def _marks(item: JsonObject) -> dict[str, Any]:
    return dict(words(child(item, "metadata").get("labels")))
