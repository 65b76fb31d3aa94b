"""The meaning or the errors of a job file, as a result and as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated

from pydantic import Field, WithJsonSchema

from pai_install.documents.problem import Severity, printable, short, text_lines
from pai_install.documents.quantity import format_bytes
from pai_install.jobs.kubernetes import KubernetesFile, KubernetesJob, KubernetesRole
from pai_install.jobs.model import Job, JobMount, JobPort, Role
from pai_install.jobs.read import JobReading, Protocol
from pai_install.jobs.variable_names import own_variables, variable_names
from pai_install.json_schema import Count, Report, ReportObject
from pai_install.report.table import table
from pai_install.scheduling.model import Priority
from pai_install.system.words import clipped, plural

PROTOCOLS = {
    "openpai-v1": "OpenPAI's protocol 1",
    "openpai-v2": "OpenPAI's protocol 2",
    "kubernetes": "objects of Kubernetes",
}
_HEAD = ("ROLE", "INSTANCES", "CPU", "MEMORY", "GPUS", "SHM", "SKU", "RETRIES", "IMAGE")
_HEAD_NATIVE = ("JOB", "ROLE", "INSTANCES", "CPU", "MEMORY", "DEVICES")
_MIB = 2**20
_Position = Annotated[int, WithJsonSchema({"type": "integer", "minimum": 1})]


class JobProblem(ReportObject):
    """A problem of a job file."""

    file: str
    line: _Position
    column: _Position
    path: str
    severity: Severity
    code: Annotated[str, WithJsonSchema({"type": "string", "pattern": "^job[.]"})]
    message: str
    remedy: str


class ReadRole(ReportObject):
    """A role of the job."""

    name: str
    instances: Count
    image: str
    command: str | None = Field(description="First line of the command. null: it has a secret.")
    confidential: bool
    cpu: Count
    memory_mb: Count
    gpus: Count
    shm_mb: Count
    sku: str | None
    ports: tuple[JobPort, ...]
    min_failed: Count | None = Field(description="Failed instances that fail the job. null: none.")
    min_succeeded: Count | None = Field(description="Succeeded instances that end the job. null: all of the role.")
    retries: Count
    registry: str | None = Field(description="Registry of its own login.")
    variables: tuple[str, ...]


class ReadJob(ReportObject):
    """A job of OpenPAI."""

    name: str
    virtual_cluster: str | None
    priority: Priority | None
    retries: Count | None = Field(description="null: without end.")
    gang: bool
    instances: Count
    gpus: Count
    mounts: tuple[JobMount, ...]
    roles: tuple[ReadRole, ...]
    variables: tuple[str, ...]


class ReadObject(ReportObject):
    """A job that is an object of Kubernetes."""

    api_version: str
    kind: str
    name: str
    queue: str | None
    roles: tuple[KubernetesRole, ...]


class ReadFile(ReportObject):
    """A job file."""

    file: str
    ok: bool
    protocol: Protocol | None
    problems: tuple[JobProblem, ...]
    job: ReadJob | None
    objects: tuple[ReadObject, ...]


class ReadingsReport(Report, title="pai-install job validate --format json"):
    """The meaning or the errors of job files."""

    ok: bool = Field(description="Whether no file has an error.")
    files: tuple[ReadFile, ...]


def readings_report(readings: Sequence[JobReading]) -> ReadingsReport:
    """The report of all files."""
    return ReadingsReport(ok=all(one.job is not None for one in readings), files=tuple(map(_file, readings)))


def _file(reading: JobReading) -> ReadFile:
    job = reading.job
    return ReadFile(
        file=reading.file,
        ok=job is not None,
        protocol=reading.protocol,
        problems=tuple(map(JobProblem.model_validate, reading.problems)),
        job=_job(job) if isinstance(job, Job) else None,
        objects=tuple(map(_native, job.jobs)) if isinstance(job, KubernetesFile) else (),
    )


def _job(job: Job) -> ReadJob:
    return ReadJob(
        name=job.name,
        virtual_cluster=job.virtual_cluster,
        priority=job.priority,
        retries=job.retries,
        gang=job.gang,
        instances=job.instances,
        gpus=job.gpus,
        mounts=job.mounts,
        roles=tuple(map(_role, job.roles)),
        variables=tuple(variable_names(job, instances=False)),
    )


def _role(role: Role) -> ReadRole:
    return ReadRole(
        name=role.name,
        instances=role.instances,
        image=role.image,
        command=None if role.confidential else first_line(role.command),
        confidential=role.confidential,
        **asdict(role.resources),
        ports=role.ports,
        min_failed=role.min_failed,
        min_succeeded=role.min_succeeded,
        retries=role.retries,
        registry=role.login.registry if role.login is not None else None,
        variables=tuple(own_variables(role)),
    )


def _native(job: KubernetesJob) -> ReadObject:
    return ReadObject(
        api_version=job.kind.api, kind=job.kind.name, name=job.name, queue=job.queue or None, roles=job.roles
    )


def first_line(command: str) -> str:
    """The first line of a command that says anything, short enough for a line."""
    # Every converted command begins with the lines of its subshell, which say nothing about it.
    lines = [line.strip() for line in command.splitlines() if line.strip() not in ("", "(", "set -e")]
    first = next((line for line in lines if not line.startswith("#")), lines[0] if lines else "")
    return clipped(printable(first), 100)


def readings_text(readings: Sequence[JobReading]) -> str:
    """Returns the problems of each file, and the meaning of files without errors."""
    return "\n".join("\n".join(_lines(one)) + "\n" for one in readings)


def _lines(reading: JobReading) -> Iterator[str]:
    yield from text_lines(reading.problems)
    if reading.job is None:
        errors = sum(problem.is_error for problem in reading.problems)
        yield f"{reading.file} is no job that can run: {plural(errors, 'error')}"
        return
    if reading.problems:
        yield ""
    if isinstance(reading.job, Job):
        yield from _job_lines(reading, reading.job)
    else:
        yield from _native_lines(reading, reading.job)


def _job_lines(reading: JobReading, job: Job) -> Iterator[str]:
    gpus = plural(job.gpus, "GPU") if job.gpus else "no GPUs"
    protocol = PROTOCOLS[reading.protocol or "kubernetes"]
    yield f"{reading.file}: the job {job.name} in {protocol}: {plural(job.instances, 'instance')}, {gpus}"
    yield ""
    yield from table([_HEAD, *map(_cells, job.roles)]).splitlines()
    yield ""
    for role in job.roles:
        yield f"  {role.name} runs: {'a command with secrets' if role.confidential else first_line(role.command)}"
        if role.ports:
            yield f"  {role.name} listens on: {', '.join(map(_port, role.ports))}"
        if role.login is not None:
            yield f"  {role.name} has a login of its own at {printable(role.login.registry)}"
    yield f"  virtual cluster: {job.virtual_cluster or 'default'}"
    yield f"  priority: {job.priority or 'the usual one of the virtual cluster'}"
    yield f"  starts: {'all instances together, or none' if job.gang else 'each instance when there is room for it'}"
    yield from (f"  {line}" for line in _ends(job))
    retries = "without end" if job.retries is None else plural(job.retries, "time") if job.retries else "never"
    yield f"  begins again when it failed: {retries}"
    mounts = [f"{mount.storage} at {mount.path}" for mount in job.mounts]
    yield f"  mounts: {', '.join(mounts) or 'nothing'}"
    yield "  variables:"
    own = dict.fromkeys(name for role in job.roles for name in own_variables(role))
    yield from (f"    {name}" for name in (*variable_names(job, instances=False), *own))


def _cells(role: Role) -> tuple[str, ...]:
    requested = role.resources
    numbers = (
        str(role.instances),
        str(requested.cpu),
        f"{requested.memory_mb} MB",
        str(requested.gpus),
        f"{requested.shm_mb} MB",
    )
    return (role.name, *numbers, requested.sku or "any", str(role.retries), short(role.image))


def _port(port: JobPort) -> str:
    where = f"from {port.begin} on" if port.begin is not None else "wherever they are free"
    return f"{port.label} ({plural(port.count, 'port')}, {where})"


def _ends(job: Job) -> Iterator[str]:
    """Yields the end conditions of the job as text."""
    failed = [f"{role.min_failed} of {role.name}" for role in job.roles if role.min_failed is not None]
    yield f"has failed when these instances fail: {', or '.join(failed) or 'none, it goes on'}"
    done = [f"{role.min_succeeded} of {role.name}" for role in job.roles if role.min_succeeded is not None]
    yield f"has succeeded when these instances succeed: {', or '.join(done) or 'all of all roles'}"


def _native_lines(reading: JobReading, native: KubernetesFile) -> Iterator[str]:
    jobs = ", ".join(f"{job.kind.name} {job.name}" for job in native.jobs)
    beside = f" and {plural(len(native.beside), 'object')} beside" if native.beside else ""
    yield f"{reading.file}: {jobs}{beside}, kept as written"
    yield ""
    rows = [
        (
            job.name,
            role.name,
            str(role.instances),
            f"{role.cpu_millis / 1000:g}",
            format_bytes(role.memory_bytes // _MIB * _MIB),
            ", ".join(f"{count} {name}" for name, count in role.devices.items()) or "none",
        )
        for job in native.jobs
        for role in job.roles
    ]
    yield from table([_HEAD_NATIVE, *rows]).splitlines()
    for job in native.jobs:
        yield f"  {job.name}: {f'queue {job.queue}' if job.queue else 'gets the queue of its virtual cluster'}"
