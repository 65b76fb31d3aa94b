"""Use cases of jobs: list, show, logs, stop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pai_install.app.cluster_context import ClusterContext
from pai_install.app.frontend import LogLine
from pai_install.app.last_applied import last_applied
from pai_install.cluster.client import ClusterClient, LogWindow, Patch, Select
from pai_install.cluster.retries import SOON_S, answered
from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.anomalies import abnormal, unknown
from pai_install.jobs.compile import names
from pai_install.jobs.directory import JobDirectory
from pai_install.jobs.history import JobRecord
from pai_install.jobs.pod_status import ENDED, Instance
from pai_install.jobs.read import read_job_text
from pai_install.jobs.state import PODS, JobState
from pai_install.kube.model import Ref
from pai_install.kube.objects import child, words
from pai_install.profile.model import ClusterProfile
from pai_install.schedulers.job_check import never_starts
from pai_install.schedulers.registry import backend_of
from pai_install.scheduling.job_kinds import queued_at
from pai_install.scheduling.model import PRIORITIES
from pai_install.site.use_limits import UseLimits
from pai_install.system.parameters import Parameter
from pai_install.system.plain import plain_text
from pai_install.system.words import plural
from pai_install.users.directory import owner_of

# pods have half a minute to end
_STOP_S = 90
_DAY_S = 86400


def open_job_directory(app: ClusterContext) -> JobDirectory:
    """The jobs of the site's cluster, of the scheduler that it has: the site may have another one already.

    Raises PaiError for a site and a cluster without virtual clusters, NoClusterError, and ApiError.
    """
    profile = app.profile
    applied = last_applied(app.cluster)
    backend = (applied or profile.require_scheduling()).backend
    kinds = queued_at(backend, operator=profile.training_operator)
    return JobDirectory(profile, kinds, backend_of(backend).status_resource, app.cluster)


class JobName(BaseModel):
    """Names one job."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: Annotated[str, Parameter(positional=True, metavar="NAME")]
    group: Annotated[str, Parameter(metavar="GROUP")] = Field(default="", description="Only jobs of this group.")


def has_job(app: ClusterContext, name: str, group: str) -> bool:
    """Whether a group has a job of that name. Deleted ones do not count."""
    jobs = open_job_directory(app)
    return any(job.name == name for job in jobs.list(jobs.namespace_of(group)))


class ListJobs(BaseModel):
    """Selects jobs."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    group: Annotated[str, Parameter(metavar="GROUP")] = Field(default="", description="Only jobs of this group.")
    user: Annotated[str, Parameter(metavar="USER")] = Field(default="", description="Only jobs of this user.")
    deleted: Annotated[bool, Parameter("--all")] = Field(
        default=False, description="Also deleted jobs that have a record."
    )
    abnormal: bool = Field(default=False, description="Only jobs that run for days or leave their GPUs idle.")
    days: Annotated[float | None, Parameter(default="the site's, else 5")] = Field(
        default=None, ge=0, description="Days after which --abnormal lists a job."
    )


def list_jobs(app: ClusterContext, request: ListJobs) -> tuple[JobState, ...]:
    """Returns the selected jobs, deleted jobs first. With request.abnormal the longest come first."""
    jobs = open_job_directory(app)
    namespace = jobs.namespace_of(request.group)
    existing = jobs.list(namespace)
    known = (*jobs.deleted(existing, namespace), *existing) if request.deleted else existing
    found = tuple(job for job in known if owner_of(request.user) in {"", job.user})
    if not request.abnormal:
        return found
    now = datetime.now(UTC)
    if unmeasured := unknown(found, now):
        app.notify(f"how busy their GPUs are is not known of {', '.join(unmeasured)}")
    return abnormal(found, now, lambda cluster: _limits(app.profile, cluster, request.days))


def _limits(profile: ClusterProfile, cluster: str, days: float | None) -> UseLimits:
    limits = profile.limits_of(cluster)
    return limits if days is None else replace(limits, long=replace(limits.long, after_s=int(days * _DAY_S)))


def show_job(app: ClusterContext, request: JobName) -> JobState:
    """The job, deleted jobs included: the latest of the name. A job that can never start says so."""
    jobs = open_job_directory(app)
    job = jobs.find(request.name, request.group)[0]
    if job.state != "WAITING" or job.gone:
        return job
    content = jobs.file_at(Ref(job.kind.full_name, job.label, job.namespace))
    never = _never_starts(app, job, content) if content else ""
    return replace(job, why=f"can never start: {never}") if never else job


def _never_starts(app: ClusterContext, job: JobState, content: str) -> str:
    """Why the virtual clusters that the cluster has can never start a job. content: the file of the job."""
    applied = last_applied(app.cluster)
    profile = app.profile if applied is None else app.profile.model_copy(update={"scheduling": applied})
    priority = next((one for one in PRIORITIES if one == job.priority), None)
    reading = read_job_text(content, Path(job.name)).in_queue(job.cluster or None, priority)
    return never_starts(reading, profile) if reading.job is not None else ""


def read_job_file(app: ClusterContext, request: JobName) -> str:
    """The file of a job, with `******` in place of secrets. Raises PaiError for a job without one."""
    found = open_job_directory(app).file_of(request.name, request.group)
    if found is None:
        raise PaiError(
            f"cannot print the file of {request.name}: the cluster has no copy",
            code="job-file-missing",
            remedy="print its object with kubectl get -o yaml",
        )
    return found


class JobLogs(JobName):
    """Selects the instances of a job to print their output."""

    role: Annotated[str, Parameter(metavar="ROLE")] = Field(default="", description="Only instances of this role.")
    index: int | None = Field(default=None, ge=0, description="Only the instance with this number.")
    follow: bool = Field(default=False, description="Print new lines until the instance ends. Needs one instance.")
    raw: bool = Field(default=False, description="Do not escape control characters.")


@dataclass(frozen=True, slots=True)
class InstanceLog:
    """The output of an instance."""

    instance: Instance
    text: str


def print_job_logs(app: ClusterContext, request: JobLogs) -> tuple[InstanceLog, ...]:
    """The output of the selected instances. With request.follow new lines go to the front end as they come.

    Raises PaiError for an unknown role or instance, and where request.follow selects several instances.
    """
    jobs = open_job_directory(app)
    job, record = jobs.find(request.name, request.group)
    selected = select_instances(job, request.role, request.index)
    if request.follow:
        _require_one(selected)
        if not selected[0].gone:
            pod = Ref("pod", selected[0].pod, job.namespace)
            for line in jobs.client.log_lines(pod, LogWindow(follow=True)):
                app.frontend.notify(LogLine(line if request.raw else plain_text(line)))
            return ()
    if not selected:
        app.notify(f"{job.name} has no pods: {job.state}{f', {job.why}' if job.why else ''}")
    if len(selected) == 1 and selected[0].state in {"WAITING", "STARTING"}:
        app.notify(f"{selected[0].role} {selected[0].index} has written nothing yet: {selected[0].state}")
        return ()
    output = _output(jobs.client, job, record, selected) if selected else {}
    texts = output if request.raw else {pod: plain_text(text) for pod, text in output.items()}
    return tuple(InstanceLog(one, texts.get(one.pod, "")) for one in selected)


def _output(
    client: ClusterClient, job: JobState, record: JobRecord | None, selected: list[Instance]
) -> Mapping[str, str]:
    """Returns the output of each pod, of deleted pods the last lines."""
    existing, found = [one for one in selected if not one.gone], {}
    if len(existing) == 1:
        found[existing[0].pod] = client.logs(Ref("pod", existing[0].pod, job.namespace))
    elif existing:
        found.update(client.logs_of(Select((PODS,), job.namespace, _pods_of(job))))
    if record is not None and len(existing) < len(selected):
        found |= {pod: text for pod, text in recorded_output(client, record).items() if pod not in found}
    return found


def recorded_output(client: ClusterClient, record: JobRecord) -> Mapping[str, str]:
    """Returns the recorded last lines of each pod of a job."""
    (lines,) = client.get([Ref("configmap", record.logs, record.namespace)])
    return words(child(lines or {}, "data"))


def _pods_of(job: JobState) -> str:
    """The selector of a job's pods."""
    return f"{job.kind.marks.job}={job.label}" if job.kind.marks else f"{names.USER}={job.user}"


def select_instances(job: JobState, role: str, index: int | None) -> list[Instance]:
    """The instances of a role ("": of all). Raises PaiError for a role or a number that the job lacks."""
    roles = {one.name: one for one in job.roles}
    if role and role not in roles:
        raise PaiError(
            f"cannot find role {role} in {job.name}",
            code="unknown-role",
            remedy=f"choose one of: {', '.join(roles)}",
            exit_code=ExitCode.USAGE,
        )
    chosen = [roles[role]] if role else list(job.roles)
    if index is not None and all(index >= one.wanted for one in chosen):
        raise PaiError(
            f"cannot find instance {index} of {job.name}",
            code="unknown-instance",
            remedy=f"choose a number from 0 to {max(one.wanted for one in chosen) - 1}",
            exit_code=ExitCode.USAGE,
        )
    return [one for it in chosen for one in it.instances if index in {None, one.index}]


def _require_one(selected: list[Instance]) -> None:
    if len(selected) != 1:
        existing = ", ".join(f"{one.role} {one.index}" for one in selected) or "none"
        raise PaiError(
            f"cannot follow {len(selected)} instances: {existing}",
            code="follow-needs-one-instance",
            remedy="choose one with --role and --index",
            exit_code=ExitCode.USAGE,
        )


class StopJob(JobName):
    """Stops a job."""

    why: Annotated[str, Parameter(metavar="TEXT")] = Field(default="", description="Reason for `job show`.")


def stop_job(app: ClusterContext, request: StopJob) -> int:
    """Deletes a job with all its pods. Returns the exit code."""
    jobs = open_job_directory(app)
    job = jobs.get(request.name, request.group)
    app.frontend.require_answers()
    if not app.confirm(f"stop {job.name} of {job.user} ({job.state}, {plural(len(job.instances), 'pod')})"):
        return ExitCode.PREFLIGHT_FAILED
    end_job(app, job, request.why, wait_s=_STOP_S)
    app.notify(f"{job.name} is deleted")
    return ExitCode.OK


def end_job(app: ClusterContext, job: JobState, why: str = "", *, wait_s: float = 0, noted: bool = True) -> None:
    """Deletes a job with its pods. Waits for the end if wait_s is above 0. noted: the job says who stopped it."""
    # The note is first, because the job recorder reads it from the job.
    if noted and job.state not in ENDED:
        note = _stopped(job, app.user, why)
        answered(lambda: app.cluster.patch([note]), SOON_S)
    # A deletion of a selection also waits for the pods, so that the name is free afterwards.
    own = Select((job.kind.full_name,), job.namespace, fields=f"metadata.name={job.label}")
    answered(lambda: app.cluster.delete_selected(own, wait_s=wait_s), SOON_S)


def _stopped(job: JobState, user: str, why: str) -> Patch:
    """Who stops it and why, for its record."""
    notes = {names.STOPPED_BY: user, **({names.STOPPED_WHY: why} if why else {})}
    return Patch(Ref(job.kind.full_name, job.label, job.namespace), {"metadata": {"annotations": notes}})
