"""A job for Volcano: its own Job, which starts whole and is restarted whole. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pai_install.agents.common.retries import RETRIES
from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.compile.jobset import ENDLESS
from pai_install.jobs.compile.names import names_of
from pai_install.jobs.compile.pod import Outline, PodExtras, companions, pod_template
from pai_install.jobs.kubernetes import KubernetesJob
from pai_install.jobs.model import Job, Role
from pai_install.jobs.place import JobPlace
from pai_install.schedulers.job_fields import JobField, pod_ways, priority_reason, queue_field
from pai_install.scheduling.job_kinds import VOLCANO_JOB
from pai_install.scheduling.job_queue import QUEUE_NOTE

Object = dict[str, Any]

KIND = "jobs.batch.volcano.sh"
SCHEDULER = "volcano"
_HOST = "{job}-{role}-{index}"
_PLACES = "Volcano places it"
# A pod that loses its devices fails, too, before it goes. Its end restarts the job and so cancels this action. In the
# same time, the recorder ends a job that has failed too often.
_END = {"event": "PodFailed", "action": "TerminateJob", "timeout": "15s"}
_INDEX = "metadata.labels['volcano.sh/task-index']"


def volcano_objects(job: Job, place: JobPlace) -> Iterator[Object]:
    """The Job first. Raises PaiError for what Volcano cannot count."""
    for role in job.roles:
        _refuse(role)
    gang = Outline(job, place, names_of(job, place.owner.namespace, _HOST, 0), _INDEX)
    spec = {
        "schedulerName": SCHEDULER,
        "queue": place.cluster.name,
        "priorityClassName": place.priority,
        "minAvailable": job.instances if job.gang else 1,
        # an eviction counts as a retry, and is no one's fault: the recorder of jobs counts real failures
        "maxRetry": ENDLESS,
        "plugins": {"svc": ["--publish-not-ready-addresses=true"], "env": []},
        # of a job that lost a pod the rest would hold its devices for nothing
        "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
        "tasks": [_task(gang, role) for role in job.roles],
    }
    yield {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": _metadata(gang), "spec": spec}
    yield from companions(gang)


def _metadata(gang: Outline) -> Object:
    metadata, retries = gang.metadata(), gang.job.retries
    notes = {**metadata["annotations"], **({RETRIES: str(retries)} if retries else {})}
    return {**metadata, "annotations": notes}


def _failed(retries: int | None) -> Object:
    """The policy for a pod that fails. retries: None for no limit."""
    if retries == 0:
        return dict(_END)
    return {"event": "PodFailed", "action": "RestartJob", **({"timeout": _END["timeout"]} if retries else {})}


def _task(gang: Outline, role: Role) -> Object:
    policies = []
    if role.min_failed is not None:
        policies.append(_failed(gang.job.retries))
    if role.min_succeeded is not None:
        policies.append({"event": "TaskCompleted", "action": "CompleteJob"})
    return {
        "name": gang.names.roles[role.name],
        "replicas": role.instances,
        "policies": policies,
        "template": pod_template(gang, role, PodExtras({"schedulerName": SCHEDULER})),
    }


def _refuse(role: Role) -> None:
    """What would be done otherwise than it is asked for is not done."""
    if role.min_failed not in (None, 1):
        _cannot(f"end the job when {role.min_failed} of {role.name} have failed: Volcano ends it after one, or never")
    if role.min_succeeded not in (None, role.instances):
        _cannot(
            f"end the job when {role.min_succeeded} of {role.instances} {role.name} succeeded: Volcano waits for all"
        )
    if role.retries:
        _cannot(f"retry one instance of {role.name}: Volcano retries the whole job")


def _cannot(what: str) -> None:
    raise PaiError(
        f"cannot {what}",
        code="volcano-job-unsupported",
        remedy="change the file, or choose another scheduler",
        exit_code=ExitCode.SITE_INVALID,
    )


def volcano_fields(job: KubernetesJob, place: JobPlace) -> Iterator[JobField]:
    """Where the kind names its queue; other jobs name it in their pods."""
    if job.kind is VOLCANO_JOB:
        yield JobField(("spec", "schedulerName"), SCHEDULER, _PLACES)
        yield queue_field(job.kind.queue, place)
        yield JobField(("spec", "priorityClassName"), *priority_reason(place))
    elif job.kind.queue:
        yield queue_field(job.kind.queue, place)
        yield JobField((*job.kind.queue[:-1], "priorityClass"), *priority_reason(place))
    else:
        for way in pod_ways(job):
            yield JobField((*way, "spec", "schedulerName"), SCHEDULER, _PLACES)
            yield queue_field((*way, "metadata", "annotations", QUEUE_NOTE), place)
            yield JobField((*way, "spec", "priorityClassName"), *priority_reason(place))
