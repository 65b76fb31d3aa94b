"""Jobs that do not use their GPUs: warnings and other actions. Pure.

A warning is an annotation of the job. Users cannot write it, so it survives a restart of the recorder.
"""

from __future__ import annotations

import json
import time
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Callable, Union

from pai_install.agents.common.utilization import Quiet, Utilization, idle, unused
from pai_install.agents.common.values import Json, child, meta, parse_object, text
from pai_install.agents.job_recorder import objects
from pai_install.agents.job_recorder.gpu_pods import GpuPod, gpu_pod
from pai_install.agents.job_recorder.limits import Evidence, Limit, Verdict, Warned, verdict

WARNED = "pai-install/warned"
_NOTEBOOK, _CLUSTER = "pai-install/notebook", "pai-install/virtual-cluster"
# between two looks at a job
LOOK_S = 15
# characters of a warning, and seconds in it
_MAX_NOTE, _MAX_TIME = 4000, 1 << 33
_GRAVITY = {"list": 0, "warn": 1, "preemptible": 2, "stop": 3}
_MEANS = {"stop": "stopped", "preemptible": "made preemptible"}
_UNLESS = {"idle": ", unless it becomes busy", "notebook": ", unless someone uses it", "long": ""}


@dataclass(frozen=True)
class Job:
    """A job that is there. resource: GROUP/RESOURCE, or pods."""

    uid: str
    key: tuple[str, ...]
    resource: str
    version: str
    name: str
    created: str
    cluster: str
    notebook: bool
    warned: Warned | None

    @property
    def namespace(self) -> str:
        """Where it is."""
        return self.key[0]


@dataclass(frozen=True)
class Warn:
    """Write the warning of a job. note: None removes it."""

    job: Job
    note: str | None


@dataclass(frozen=True)
class Stop:
    """Stop a job. why: for its record."""

    job: Job
    why: str


@dataclass(frozen=True)
class Lower:
    """Make a job preemptible. note: its new warning."""

    job: Job
    note: str


Action = Union[Warn, Stop, Lower]


class Idle:
    """All jobs and pods of groups. limits: by virtual cluster, "" for all others."""

    def __init__(self, namespaces: frozenset[str], limits: Mapping[str, tuple[Limit, ...]]) -> None:
        self._namespaces, self._limits = namespaces, limits
        self._jobs: dict[str, Job] = {}
        self._pods: dict[str, GpuPod] = {}
        self._looked = 0.0

    def see(self, resource: str, item: Json) -> None:
        """A job or a pod as it is now."""
        owner, namespace = objects.owner_of(item), meta(item, "namespace")
        if not self._limits or not owner or namespace not in self._namespaces:
            return
        key, uid = (namespace, owner, *objects.job_of(item)), meta(item, "uid")
        if objects.is_pod(item):
            self._pods[uid] = gpu_pod(item, key)
        if objects.is_job(item):
            if objects.is_deleting(item):
                self._jobs.pop(uid, None)
            else:
                self._jobs[uid] = _job(resource, item, key)

    def gone(self, item: Json) -> None:
        """A job or a pod that was deleted."""
        self._jobs.pop(meta(item, "uid"), None)
        self._pods.pop(meta(item, "uid"), None)

    def retain(self, resource: str, uids: Container[str]) -> None:
        """Jobs and pods of a kind with other UIDs were deleted."""
        self._jobs = {uid: job for uid, job in self._jobs.items() if job.resource != resource or uid in uids}
        if resource == "pods":
            self._pods = {uid: pod for uid, pod in self._pods.items() if uid in uids}

    def due(self, now: float) -> list[Action]:
        """Returns the actions to take now. Each is returned again until its effect is seen."""
        # abs: after the clock was set back, no owner may wait until the old time comes again.
        if abs(now - self._looked) < LOOK_S:
            return []
        self._looked = now
        pods: dict[tuple[str, ...], list[GpuPod]] = {}
        for pod in self._pods.values():
            pods.setdefault(pod.job, []).append(pod)
        return [action for job in self._jobs.values() for action in self._actions(job, pods.get(job.key, []), now)]

    def _actions(self, job: Job, pods: list[GpuPod], now: float) -> Iterator[Action]:
        """By the first limit that says something. A job is told of one thing at a time, the graver one."""
        limits = self._limits.get(job.cluster, self._limits.get("", ()))
        own = [limit for limit in limits if limit.what != ("idle" if job.notebook else "notebook")]
        # Pods of an older job with this name do not count.
        holders = [pod for pod in pods if pod.holds and not pod.ended and pod.created >= job.created]
        warning = job.warned
        first = [limit for limit in own if warning is not None and limit.what == warning.what]
        # The limit of the warning is gone from the site, and its end must no longer be announced.
        if warning is not None and not first:
            yield Warn(job, None)
            return
        for limit in (*first, *(limit for limit in own if _graver(limit, warning))):
            found = gathered(limit, holders)
            evidence = None if found is None else found[0]
            what = verdict(limit, evidence, warning if limit in first else None, now)
            if what is not Verdict.NOTHING:
                yield _action(job, limit, what, found)
                return


def _graver(limit: Limit, warned: Warned | None) -> bool:
    """Whether a job that was told something may be told of this limit, too: where nothing more comes of the other."""
    if warned is None:
        return True
    return (warned.then == "warn" or warned.done) and _GRAVITY[limit.then] > _GRAVITY[warned.then]


def _job(resource: str, item: Json, key: tuple[str, ...]) -> Job:
    labels = child(item, "metadata", "labels")
    return Job(
        meta(item, "uid"),
        key,
        resource,
        text(item.get("apiVersion")),
        meta(item, "name"),
        meta(item, "creationTimestamp"),
        text(labels.get(_CLUSTER)),
        labels.get(_NOTEBOOK) == "true",
        _warned(text(child(item, "metadata", "annotations").get(WARNED))),
    )


def _warned(note: str) -> Warned | None:
    try:
        found = parse_object(note, max_size=_MAX_NOTE, max_depth=2)
        then, at, grace = text(found["then"]), float(found["at"]), float(found["grace"])
        if then not in _GRAVITY or not (0 <= at <= _MAX_TIME and 0 <= grace <= _MAX_TIME):
            return None
        return Warned(text(found["what"]), then, at, grace, found["done"] is True)
    except (ValueError, TypeError, KeyError, OverflowError):
        return None


def gathered(limit: Limit, pods: list[GpuPod]) -> tuple[Evidence, str] | None:
    """Returns evidence about all pods of a job with GPUs, and its words. None if a pod is unknown."""
    uses = [pod.use for pod in pods if pod.use is not None]
    # One unknown pod may be the busy one of the job.
    if not uses or len(uses) < len(pods) or not all(pod.runs for pod in pods):
        return None
    # The job is known only until the oldest of its reports.
    at, gpus = min(use.at for use in uses), sum(use.gpus for use in uses)
    held = f"{gpus} GPU{'s' * (gpus != 1)}"
    if limit.what == "long":
        starts = [pod.started for pod in pods]
        since = min(starts)  # as `job list --abnormal` has it
        return (Evidence(since, at), f"it runs for {words(at - since)} and holds {held}") if since else None
    found = _all_quiet(unused if limit.what == "notebook" else idle, limit.below, uses)
    if found is None:
        return None
    long, most = words(at - found.since), f"under {limit.below} % busy, {found.most} % at most"
    message = f"no one has used this job for {long}: its {held} {'were' if gpus != 1 else 'was'} {most}"
    plain = f"its {held} {'were' if gpus != 1 else 'was'} {most}, for {long}"
    return Evidence(found.since, at), message if limit.what == "notebook" else plain


def _all_quiet(read: Callable[[Utilization, int], Quiet | None], below: int, uses: list[Utilization]) -> Quiet | None:
    found = [one for one in (read(use, below) for use in uses) if one is not None]
    if len(found) < len(uses):
        return None
    return Quiet(max(one.since for one in found), max(one.most for one in found))


def _action(job: Job, limit: Limit, what: Verdict, found: tuple[Evidence, str] | None) -> Action:
    if what is Verdict.CLEAR or found is None:
        return Warn(job, None)
    evidence, why = found
    if what is Verdict.WARN:
        return Warn(job, _note(limit, evidence.at, _warning(limit, evidence.at, why), done=False))
    warned = f"{why}; it was warned at {_moment(job.warned.at if job.warned is not None else 0)}"
    if limit.then == "stop":
        return Stop(job, warned)
    return Lower(job, _note(limit, evidence.at, f"others may take its GPUs: {warned}", done=True))


def _warning(limit: Limit, at: float, why: str) -> str:
    if limit.then == "warn":
        return why
    return f"{why}; at {_moment(at + limit.grace_s)} it will be {_MEANS[limit.then]}{_UNLESS[limit.what]}"


def _note(limit: Limit, at: float, message: str, *, done: bool) -> str:
    warning: dict[str, Any] = {"what": limit.what, "then": limit.then, "at": at, "grace": limit.grace_s}
    return json.dumps({**warning, "done": done, "says": message})


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def words(lasts_s: float) -> str:
    """How long, in the largest units that say it."""
    minutes = int(lasts_s // 60)
    days, hours = minutes // 1440, minutes // 60
    for count, unit in ((days, "day"), (hours, "hour")):
        if count >= 2:
            return f"{count} {unit}s"
    return f"{minutes} minute{'s' * (minutes != 1)}"
