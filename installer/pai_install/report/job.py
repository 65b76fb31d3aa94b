"""The meaning or the errors of a job file, as data, as text, and as the schema of the data. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pai_install.documents.problem import printable, short, text_lines
from pai_install.documents.quantity import format_bytes
from pai_install.jobs.kubernetes import Native, NativeJob
from pai_install.jobs.model import Job, JobPort, Role
from pai_install.jobs.read import JobReading
from pai_install.jobs.variable_names import own_variables, variable_names
from pai_install.json_schema import closed_object, published
from pai_install.report.storages import table
from pai_install.scheduling.model import PRIORITIES
from pai_install.system.words import plural

JOB_SCHEMA_VERSION = 1
PROTOCOLS = {
    "openpai-v1": "OpenPAI's protocol 1",
    "openpai-v2": "OpenPAI's protocol 2",
    "kubernetes": "objects of Kubernetes",
}
_HEAD = ("ROLE", "INSTANCES", "CPU", "MEMORY", "GPUS", "SHM", "SKU", "RETRIES", "IMAGE")
_HEAD_NATIVE = ("JOB", "ROLE", "INSTANCES", "CPU", "MEMORY", "DEVICES")
_MIB = 2**20
_TEXT = {"type": "string"}
_MAYBE = {"type": ["string", "null"]}
_COUNT = {"type": "integer", "minimum": 0}
_MAYBE_COUNT = {"type": ["integer", "null"], "minimum": 0}


def readings_data(readings: Sequence[JobReading]) -> dict[str, Any]:
    """The published form of all files."""
    return {
        "schema_version": JOB_SCHEMA_VERSION,
        "ok": all(one.job is not None for one in readings),
        "files": [_file(one) for one in readings],
    }


def _file(reading: JobReading) -> dict[str, Any]:
    job = reading.job
    return {
        "file": reading.file,
        "ok": job is not None,
        "protocol": reading.protocol,
        "problems": [problem.as_json() for problem in reading.problems],
        "job": _job(job) if isinstance(job, Job) else None,
        "objects": [_native(one) for one in job.jobs] if isinstance(job, Native) else [],
    }


def _job(job: Job) -> dict[str, Any]:
    return {
        "name": job.name,
        "virtual_cluster": job.virtual_cluster,
        "priority": job.priority,
        "retries": job.retries,
        "gang": job.gang,
        "instances": job.instances,
        "gpus": job.gpus,
        "mounts": [{"storage": mount.storage, "path": mount.path} for mount in job.mounts],
        "roles": [_role(role) for role in job.roles],
        "variables": list(variable_names(job, instances=False)),
    }


def _role(role: Role) -> dict[str, Any]:
    asked = role.resources
    return {
        "name": role.name,
        "instances": role.instances,
        "image": role.image,
        "command": None if role.confidential else first_line(role.command),
        "confidential": role.confidential,
        "cpu": asked.cpu,
        "memory_mb": asked.memory_mb,
        "gpus": asked.gpus,
        "shm_mb": asked.shm_mb,
        "sku": asked.sku,
        "ports": [{"label": port.label, "count": port.count, "begin": port.begin} for port in role.ports],
        "min_failed": role.min_failed,
        "min_succeeded": role.min_succeeded,
        "retries": role.retries,
        "registry": role.login.registry if role.login is not None else None,
        "variables": list(own_variables(role)),
    }


def _native(job: NativeJob) -> dict[str, Any]:
    return {
        "api_version": job.kind.api,
        "kind": job.kind.name,
        "name": job.name,
        "queue": job.queue or None,
        "roles": [
            {
                "name": role.name,
                "instances": role.instances,
                "cpu_millis": role.cpu_millis,
                "memory_bytes": role.memory_bytes,
                "devices": dict(role.devices),
            }
            for role in job.roles
        ],
    }


def first_line(command: str) -> str:
    """The first line of a command that says anything, short enough for a line."""
    lines = [line.strip() for line in command.splitlines() if line.strip() not in ("", "(", "set -e")]
    first = next((line for line in lines if not line.startswith("#")), lines[0] if lines else "")
    shown = printable(first)
    return shown if len(shown) <= 100 else f"{shown[:97]}..."


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
    asked = role.resources
    numbers = (str(role.instances), str(asked.cpu), f"{asked.memory_mb} MB", str(asked.gpus), f"{asked.shm_mb} MB")
    return (role.name, *numbers, asked.sku or "any", str(role.retries), short(role.image))


def _port(port: JobPort) -> str:
    where = f"from {port.begin} on" if port.begin is not None else "wherever they are free"
    return f"{port.label} ({plural(port.count, 'port')}, {where})"


def _ends(job: Job) -> Iterator[str]:
    """Yields the end conditions of the job as text."""
    failed = [f"{role.min_failed} of {role.name}" for role in job.roles if role.min_failed is not None]
    yield f"has failed when these instances fail: {', or '.join(failed) or 'none, it goes on'}"
    done = [f"{role.min_succeeded} of {role.name}" for role in job.roles if role.min_succeeded is not None]
    yield f"has succeeded when these instances succeed: {', or '.join(done) or 'all of all roles'}"


def _native_lines(reading: JobReading, native: Native) -> Iterator[str]:
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


def schema() -> dict[str, Any]:
    """The JSON Schema of `readings_data`."""
    return published(
        "pai-install job validate --format json",
        JOB_SCHEMA_VERSION,
        ok={"type": "boolean", "description": "whether no file has an error"},
        files=_list(
            closed_object(
                file=_TEXT,
                ok={"type": "boolean"},
                protocol={"enum": [*PROTOCOLS, None]},
                problems=_list(_problem_schema()),
                job={"anyOf": [_job_schema(), {"type": "null"}]},
                objects=_list(_native_schema()),
            )
        ),
    )


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _problem_schema() -> dict[str, Any]:
    number = {"type": "integer", "minimum": 1}
    return closed_object(
        file=_TEXT,
        line=number,
        column=number,
        path=_TEXT,
        severity={"enum": ["error", "warning"]},
        code={"type": "string", "pattern": "^job[.]"},
        message=_TEXT,
        remedy=_TEXT,
    )


def _job_schema() -> dict[str, Any]:
    role = closed_object(
        name=_TEXT,
        instances=_COUNT,
        image=_TEXT,
        command={**_MAYBE, "description": "its first line; null where it holds a secret"},
        confidential={"type": "boolean"},
        cpu=_COUNT,
        memory_mb=_COUNT,
        gpus=_COUNT,
        shm_mb=_COUNT,
        sku=_MAYBE,
        ports=_list(closed_object(label=_TEXT, count=_COUNT, begin=_MAYBE_COUNT)),
        min_failed={**_MAYBE_COUNT, "description": "instances that fail before the job has failed; null: none ends it"},
        min_succeeded={**_MAYBE_COUNT, "description": "that succeed before the job has; null: these alone end nothing"},
        retries=_COUNT,
        registry={**_MAYBE, "description": "where its own login is for"},
        variables=_list(_TEXT),
    )
    return closed_object(
        name=_TEXT,
        virtual_cluster=_MAYBE,
        priority={"enum": [*PRIORITIES, None]},
        retries={**_MAYBE_COUNT, "description": "null: without end"},
        gang={"type": "boolean"},
        instances=_COUNT,
        gpus=_COUNT,
        mounts=_list(closed_object(storage=_TEXT, path=_TEXT)),
        roles=_list(role),
        variables=_list(_TEXT),
    )


def _native_schema() -> dict[str, Any]:
    role = closed_object(
        name=_TEXT,
        instances=_COUNT,
        cpu_millis=_COUNT,
        memory_bytes=_COUNT,
        devices={"type": "object", "additionalProperties": _COUNT},
    )
    return closed_object(api_version=_TEXT, kind=_TEXT, name=_TEXT, queue=_MAYBE, roles=_list(role))
