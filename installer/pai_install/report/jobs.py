"""The state of jobs, as a result and as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import AliasPath, Field

from pai_install.agents.common.records import Preemption
from pai_install.jobs.pod_status import State
from pai_install.jobs.state import JobState, RoleState
from pai_install.json_schema import Count, Report, ReportObject
from pai_install.report.storages import table
from pai_install.system.words import plural

_HEAD = ("NAME", "GROUP", "USER", "VC", "PRIORITY", "STATE", "PODS", "GPUS", "WHY")
_ROLE_HEAD = ("ROLE", "INDEX", "STATE", "MACHINE", "EXIT", "WHY")


class PodEntry(ReportObject):
    """A pod of a role."""

    index: Count
    pod: str
    state: State
    machine: str = Field(description="Empty before it has one.")
    exit_code: int | None = Field(description="null while it runs.")
    why: str = Field(description="What it waits for, or what ended it.")
    gone: bool = Field(description="Whether the pod is deleted. This was its last state.")
    started: str = Field(description="When its machine took it. Empty before that.")


class RoleEntry(ReportObject):
    """A role of a job."""

    name: str
    instances: Count = Field(validation_alias="wanted", description="In all, also those that start later.")
    gpus: Count
    pods: tuple[PodEntry, ...] = Field(validation_alias="instances")


class PreemptionEntry(ReportObject):
    """A loss of devices that is no failure."""

    at: str = Field(description="Time of the preemption. Empty: the scheduler does not keep it.")
    by: str = Field(description="NAMESPACE/NAME of the job that has the devices now. Empty: unknown.")
    why: str = Field(description="Cause, in the words of the scheduler.")


class JobEntry(ReportObject):
    """A job."""

    kind: str = Field(validation_alias=AliasPath("kind", "name"), description="Kind of its object, such as JobSet.")
    name: str = Field(description="As in the file.")
    label: str = Field(description="Name of its object in Kubernetes.")
    namespace: str
    group: str
    user: str
    virtual_cluster: str = Field(validation_alias="cluster")
    priority: str
    state: State
    why: str = Field(description="What it waits for, or why it failed. Empty: nothing to say.")
    retries: Count = Field(description="Of the whole job, so far.")
    created: str
    gone: str = Field(description="When its object was deleted. Empty: it exists.")
    stopped_by: str = Field(description="Who ended it. Empty: no one, or unknown.")
    stopped_why: str = Field(description="Why they ended it. Empty: unknown.")
    abnormal: str = Field(description="What is unusual about it. Empty without --abnormal.")
    warned: str = Field(description="Warning of its idle GPUs. Empty: none.")
    preemptions: tuple[PreemptionEntry, ...] = Field(description="The latest last.")
    roles: tuple[RoleEntry, ...]


class JobReport(JobEntry, Report, title="pai-install job show"):
    """One job."""


class JobsReport(Report, title="pai-install job list"):
    """Jobs."""

    jobs: tuple[JobEntry, ...]


def jobs_report(jobs: Sequence[JobState]) -> JobsReport:
    """The report of jobs."""
    return JobsReport(jobs=tuple(map(JobEntry.model_validate, jobs)))


def jobs_text(jobs: Sequence[JobState]) -> str:
    """A line for each job."""
    if not jobs:
        return "no jobs\n"
    return table([_HEAD, *map(_line, jobs)])


def _line(job: JobState) -> tuple[str, ...]:
    wanted = sum(role.wanted for role in job.roles)
    # of an ended job some pods may be deleted, and none holds a GPU
    pods = str(wanted) if job.ended else f"{len(job.instances)}/{wanted}"
    gpus = 0 if job.ended else sum(role.together * role.gpus for role in job.roles)
    owner = (job.name, job.group, job.user, job.cluster, job.priority)
    return (*owner, job.state, pods, str(gpus), job.abnormal or job.why or _stopped(job))


def _stopped(job: JobState) -> str:
    """Returns who ended the job and why, or "" if it is unknown."""
    return (
        f"stopped by {job.stopped_by}" + (f": {job.stopped_why}" if job.stopped_why else "") if job.stopped_by else ""
    )


def job_text(job: JobState) -> str:
    """Returns the job's description, state, and the nodes of its pods."""
    said = job.why or _stopped(job)
    why = f": {said}" if said else ""
    retries = f", {plural(job.retries, 'retry', 'retries')}" if job.retries else ""
    lines = [
        f"{job.name}: {job.state}{retries}{why}",
        f"  of {job.user}, group {job.group} (namespace {job.namespace}, {job.kind.name} {job.label} there)",
        f"  in {job.cluster}, priority {job.priority}, since {job.created or 'now'}",
    ]
    if job.gone:
        lines.append(f"  gone since {job.gone}: this is what was kept of it")
    if job.warned:
        lines.append(f"  warned: {job.warned}")
    lines += [f"  {_preempted(one)}" for one in job.preemptions]
    return "".join(f"{line}\n" for line in lines) + table([_ROLE_HEAD, *pods_rows(job.roles)])


def _preempted(one: Preemption) -> str:
    to, at = f" to {one.by}" if one.by else "", f" at {one.at}" if one.at else ""
    return f"gave its devices back{to}{at}: {one.why}"


def pods_rows(roles: Sequence[RoleState]) -> Iterator[tuple[str, ...]]:
    """A line for each pod, and one for those of a role that are not there."""
    for role in roles:
        for one in role.instances:
            code = "" if one.exit_code is None else str(one.exit_code)
            yield role.name, str(one.index), one.state, one.machine, code, one.why
        if (missing := role.wanted - len(role.instances)) > 0:
            yield role.name, f"{missing} of {role.wanted}", "no pod", "", "", ""
