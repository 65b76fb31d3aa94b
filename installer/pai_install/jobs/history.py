"""Records of jobs -> how they stood. Pure. The recorder on the control planes (roles/job_recorder) writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pai_install.jobs.compile import names
from pai_install.jobs.pod_status import ENDED, Instance, State
from pai_install.jobs.state import JobState, RoleState, states_of
from pai_install.kube.objects import JsonObject, child, number, text, words
from pai_install.site.groups import RECORD_LABEL

_VERSION = 1
_STATE, _LOGS = "state", "logs"
# labels of this length are as the recorder cuts longer names
_MOST_LABEL = 63


@dataclass(frozen=True, slots=True)
class JobRecord:
    """What is kept of a job. record: the name of its ConfigMap."""

    job: JobState
    record: str
    namespace: str

    @property
    def logs(self) -> str:
        """The name of the ConfigMap with its last lines."""
        return f"{self.record}.{_LOGS}"


def selector(name: str = "") -> str:
    """Labels of the records of jobs of that name, as Kubernetes has it; of all jobs for ""."""
    return f"{RECORD_LABEL}={_STATE}" + (f",{names.JOB}={name[:_MOST_LABEL].rstrip('-.')}" if name else "")


def kept_jobs(items: Iterable[JsonObject]) -> tuple[JobRecord, ...]:
    """The records in ConfigMaps, the oldest job first; what is no record of this version is left out."""
    found = (kept for item in items for kept in _read(item))
    return tuple(sorted(found, key=lambda one: (one.job.created, one.job.namespace, one.job.label)))


def _read(item: JsonObject) -> Iterator[JobRecord]:
    metadata = child(item, "metadata")
    try:
        found = json.loads(text(child(item, "data").get("record")))
    except ValueError:
        return
    if not isinstance(found, Mapping) or number(found.get("version")) != _VERSION:
        return
    pods = [pod for pod in child(found, "pods").values() if isinstance(pod, Mapping)]
    namespace = text(metadata.get("namespace"))
    # a record tells of jobs of its own namespace alone
    for job in states_of([child(found, "job")], pods, ()):
        if job.namespace == namespace:
            yield JobRecord(_as_it_stood(job, child(found, "removed")), text(metadata.get("name")), namespace)


def _as_it_stood(job: JobState, removed: JsonObject) -> JobState:
    """A job that is gone, with what was going on when it went as stopped then."""
    said = words(removed)
    by, why = said.get("by") or job.stopped_by, said.get("why") or job.stopped_why
    ended = job.state in ENDED
    return replace(
        job,
        state=job.state if ended else "STOPPED",
        why=job.why if ended else "",
        roles=tuple(_stopped(role) for role in job.roles),
        gone=_moment(removed.get("at")),
        stopped_by=by,
        stopped_why=why,
        warned="",  # nothing comes of it now
    )


def _stopped(role: RoleState) -> RoleState:
    return replace(role, instances=tuple(map(_stopped_instance, role.instances)))


def _stopped_instance(one: Instance) -> Instance:
    state: State = one.state if one.state in ENDED else "STOPPED"
    return replace(one, state=state, why=one.why if one.state in ENDED else "", gone=True)


def _moment(at: object) -> str:
    """As Kubernetes writes times."""
    try:
        return datetime.fromtimestamp(float(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, OSError):
        return "a moment ago"


def completed(job: JobState, kept: JobRecord) -> JobState:
    """A job that has ended, with what is kept of pods of it that are gone."""
    before = {role.name: role for role in kept.job.roles}
    return replace(job, roles=tuple(_completed(role, before.get(role.name)) for role in job.roles))


def _completed(role: RoleState, before: RoleState | None) -> RoleState:
    there = {one.index for one in role.instances}
    gone = [one for one in (before.instances if before else ()) if one.index not in there]
    return replace(role, instances=tuple(sorted([*role.instances, *gone], key=lambda one: one.index)))
