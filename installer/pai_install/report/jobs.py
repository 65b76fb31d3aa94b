"""The state of jobs, as a result and as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pai_install.agents.common.records import Preemption
from pai_install.jobs.state import JobState, RoleState
from pai_install.report.table import table
from pai_install.system.words import plural

if TYPE_CHECKING:
    from pai_install.report.job_models import JobReport, JobsReport

_HEAD = ("NAME", "GROUP", "USER", "VC", "PRIORITY", "STATE", "PODS", "GPUS", "WHY")
_ROLE_HEAD = ("ROLE", "INDEX", "STATE", "MACHINE", "EXIT", "WHY")


def jobs_report(jobs: Sequence[JobState]) -> JobsReport:
    """The report of jobs."""
    from pai_install.report.job_models import JobEntry, JobsReport  # noqa: PLC0415 - see there

    return JobsReport(jobs=tuple(map(JobEntry.model_validate, jobs)))


def job_report(job: JobState) -> JobReport:
    """The report of one job."""
    from pai_install.report.job_models import JobReport  # noqa: PLC0415 - see there

    return JobReport.model_validate(job)


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
    reason = job.why or _stopped(job)
    why = f": {reason}" if reason else ""
    retries = f", {plural(job.retries, 'retry', 'retries')}" if job.retries else ""
    lines = [
        f"{job.name}: {job.state}{retries}{why}",
        f"  of {job.user}, group {job.group} (namespace {job.namespace}, {job.kind.name} {job.label} there)",
        f"  in {job.cluster}, priority {job.priority}, since {job.created or 'now'}",
    ]
    if job.gone:
        lines.append(f"  deleted at {job.gone} (from the job history)")
    if job.code:
        lines.append(f"  code {job.code}")
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
