"""How jobs stand: as data, as text, and the schemas of the data. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pai_install.agents.common.records import Preemption
from pai_install.jobs.pod_status import STATES, Instance
from pai_install.jobs.state import JobState, RoleState
from pai_install.json_schema import closed_object, published
from pai_install.report.storages import table
from pai_install.system.words import plural

JOBS_SCHEMA_VERSION = 1
_HEAD = ("NAME", "GROUP", "USER", "VC", "PRIORITY", "STATE", "PODS", "GPUS", "WHY")
_ROLE_HEAD = ("ROLE", "INDEX", "STATE", "MACHINE", "EXIT", "WHY")
_TEXT: dict[str, Any] = {"type": "string"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}


def job_data(job: JobState) -> dict[str, Any]:
    """The published form of one job."""
    return {"schema_version": JOBS_SCHEMA_VERSION, **_job(job)}


def jobs_data(jobs: Sequence[JobState]) -> dict[str, Any]:
    """The published form of a list."""
    return {"schema_version": JOBS_SCHEMA_VERSION, "jobs": [_job(job) for job in jobs]}


def _job(job: JobState) -> dict[str, Any]:
    return {
        "kind": job.kind.name,
        "name": job.name,
        "label": job.label,
        "namespace": job.namespace,
        "group": job.group,
        "user": job.user,
        "virtual_cluster": job.cluster,
        "priority": job.priority,
        "state": job.state,
        "why": job.why,
        "retries": job.retries,
        "created": job.created,
        "gone": job.gone,
        "stopped_by": job.stopped_by,
        "stopped_why": job.stopped_why,
        "abnormal": job.abnormal,
        "warned": job.warned,
        "preemptions": [{"at": one.at, "by": one.by, "why": one.why} for one in job.preemptions],
        "roles": [
            {"name": role.name, "instances": role.wanted, "gpus": role.gpus, "pods": list(map(_pod, role.instances))}
            for role in job.roles
        ],
    }


def _pod(one: Instance) -> dict[str, Any]:
    return {
        "index": one.index,
        "pod": one.pod,
        "state": one.state,
        "machine": one.machine,
        "exit_code": one.exit_code,
        "why": one.why,
        "gone": one.gone,
        "started": one.started,
    }


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


def _schema_of_job() -> dict[str, dict[str, Any]]:
    states = {"enum": list(STATES)}
    pod = closed_object(
        index=_COUNT,
        pod=_TEXT,
        state=states,
        machine={**_TEXT, "description": "empty before it has one"},
        exit_code={"type": ["integer", "null"], "description": "null while it runs"},
        why={**_TEXT, "description": "what it waits for, or what ended it"},
        gone={"type": "boolean", "description": "the pod is no longer there; this is how it stood"},
        started={**_TEXT, "description": "when its machine took it; empty before that"},
    )
    instances = {**_COUNT, "description": "in all, also those whose turn comes later"}
    role = closed_object(name=_TEXT, instances=instances, gpus=_COUNT, pods={"type": "array", "items": pod})
    return {
        "kind": {**_TEXT, "description": "of its object in Kubernetes, e.g. JobSet"},
        "name": {**_TEXT, "description": "as the file has it"},
        "label": {**_TEXT, "description": "in Kubernetes"},
        **dict.fromkeys(("namespace", "group", "user", "virtual_cluster", "priority"), _TEXT),
        "state": states,
        "why": {**_TEXT, "description": "what it waits for, or why it failed; empty: nothing to say"},
        "retries": {**_COUNT, "description": "of the whole job, so far"},
        "created": _TEXT,
        "gone": {**_TEXT, "description": "since when its object is no longer there; empty while it is"},
        "stopped_by": {**_TEXT, "description": "who ended it; empty: no one, or no one said so"},
        "stopped_why": {**_TEXT, "description": "why they did; empty: they did not say"},
        "abnormal": {**_TEXT, "description": "what is unusual about it; empty where --abnormal was not asked"},
        "warned": {**_TEXT, "description": "what it is told of GPUs that it has for nothing; empty: nothing"},
        "preemptions": {
            "type": "array",
            "items": closed_object(
                at={**_TEXT, "description": "time of the preemption; empty where the scheduler does not keep it"},
                by={**_TEXT, "description": "NAMESPACE/NAME of the job that has the devices now; empty: unknown"},
                why={**_TEXT, "description": "cause, in the words of the scheduler"},
            ),
            "description": "losses of its devices that are no failure, the latest last",
        },
        "roles": {"type": "array", "items": role},
    }


def job_schema() -> dict[str, Any]:
    """The JSON Schema of `job_data`."""
    return published("pai-install job show", JOBS_SCHEMA_VERSION, **_schema_of_job())


def jobs_schema() -> dict[str, Any]:
    """The JSON Schema of `jobs_data`."""
    jobs = {"type": "array", "items": closed_object(**_schema_of_job())}
    return published("pai-install job list", JOBS_SCHEMA_VERSION, jobs=jobs)
