"""Job history: states of deleted jobs, from the records of the job recorder. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pai_install.agents.common.records import JOB, LOGS, MAX_LABEL, RECORD, STATE, Removed, read_record
from pai_install.jobs.job_file import packed_file
from pai_install.jobs.pod_status import ENDED, Instance, State
from pai_install.jobs.state import JobState, RoleState, states_of
from pai_install.kube.objects import JsonObject, child, text
from pai_install.scheduling.job_kinds import VOLCANO_JOB


@dataclass(frozen=True, slots=True)
class JobRecord:
    """What is kept of a job. record: the name of its ConfigMap. packed_file: its compressed file, or ""."""

    job: JobState
    record: str
    namespace: str
    packed_file: str = field(default="", repr=False)

    @property
    def logs(self) -> str:
        """The name of the ConfigMap with its last lines."""
        return f"{self.record}.{LOGS}"


def selector(name: str = "") -> str:
    """Labels of the records of jobs of that name, as Kubernetes has it; of all jobs for ""."""
    return f"{RECORD}={STATE}" + (f",{JOB}={name[:MAX_LABEL].rstrip('-.')}" if name else "")


def kept_jobs(items: Iterable[JsonObject]) -> tuple[JobRecord, ...]:
    """The records in ConfigMaps, the oldest job first; what is no record of this version is left out."""
    found = (kept for item in items for kept in _read(item))
    return tuple(sorted(found, key=lambda one: (one.job.created, one.job.namespace, one.job.label)))


def _read(item: JsonObject) -> Iterator[JobRecord]:
    record = read_record(item)
    if record is not None:
        for job in states_of([record.job], record.pods.values(), ()):
            kept = replace(_as_it_stood(job, record.removed), preemptions=record.preemptions)
            name = text(child(item, "metadata").get("name"))
            yield JobRecord(kept, name, job.namespace, packed_file(record.job))


def stopped(job: JobState) -> JobState:
    """A job whose object is gone, before its record is complete."""
    return _as_it_stood(job, None)


def _as_it_stood(job: JobState, removed: Removed | None) -> JobState:
    """A deleted job. A job that had not ended was stopped by its deletion."""
    ended = job.state in ENDED
    return replace(
        job,
        state=job.state if ended else "STOPPED",
        why=job.why if ended else "",
        roles=tuple(_stopped(role) for role in job.roles),
        gone=_moment(removed),
        stopped_by=(removed.by if removed else "") or job.stopped_by,
        stopped_why=(removed.why if removed else "") or job.stopped_why,
        warned="",
    )


def _stopped(role: RoleState) -> RoleState:
    return replace(role, instances=tuple(map(_stopped_instance, role.instances)))


def _stopped_instance(one: Instance) -> Instance:
    state: State = one.state if one.state in ENDED else "STOPPED"
    return replace(one, state=state, why=one.why if one.state in ENDED else "", gone=True)


def _moment(removed: Removed | None) -> str:
    """The time of the deletion in Kubernetes' format. A record that is still to be completed has none."""
    if removed is None:
        return "a moment ago"
    try:
        return datetime.fromtimestamp(removed.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return "a moment ago"


def completed(job: JobState, kept: JobRecord) -> JobState:
    """A job with its history. An ended job has its deleted pods."""
    preemptions = kept.job.preemptions or job.preemptions
    # Volcano counts a restart after a preemption as a retry
    retries = max(0, job.retries - len(preemptions)) if job.kind is VOLCANO_JOB else job.retries
    job = replace(job, preemptions=preemptions, retries=retries)
    # JobSet deletes pods of other roles when a job ends. The record still has them.
    if job.state not in ENDED or all(len(role.instances) >= role.wanted for role in job.roles):
        return job
    before = {role.name: role for role in kept.job.roles}
    return replace(job, roles=tuple(_completed(role, before.get(role.name)) for role in job.roles))


def _completed(role: RoleState, before: RoleState | None) -> RoleState:
    there = {one.index for one in role.instances}
    gone = [one for one in (before.instances if before else ()) if one.index not in there]
    return replace(role, instances=tuple(sorted([*role.instances, *gone], key=lambda one: one.index)))
