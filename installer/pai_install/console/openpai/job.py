"""A job in OpenPAI's API: the item of a list, and the details. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from pai_install.console.openpai.states import state_of, sub_state_of, task_state
from pai_install.jobs.pod_status import ENDED, Instance
from pai_install.jobs.state import JobState, RoleState

Object = dict[str, Any]
# instances of a role without a pod that an answer lists
MAX_TASKS = 10_000
# OpenPAI's number of an exit without one
_UNKNOWN_EXIT = -1


def milliseconds(timestamp: str) -> int | None:
    """A time of Kubernetes in milliseconds since 1970, None for any other text."""
    try:
        return int(datetime.fromisoformat(timestamp).timestamp() * 1000)
    except ValueError:
        return None


def full_name(job: JobState) -> str:
    """USER~NAME."""
    return f"{job.user}~{job.name}"


def ended_at(job: JobState) -> int | None:
    """When a job ended, in milliseconds."""
    return milliseconds(job.finished) or milliseconds(job.gone) if job.ended else None


def started_at(job: JobState) -> int | None:
    """When the first machine took an instance of it."""
    return milliseconds(min((one.started for one in job.instances if one.started), default=""))


def exit_code_of(job: JobState) -> int | None:
    """The exit code of a job that ended: of the first instance that failed."""
    if job.state not in ENDED:
        return None
    if job.state == "SUCCEEDED":
        return 0
    return next((one.exit_code for one in job.instances if one.exit_code), _UNKNOWN_EXIT)


def gpus_of(job: JobState) -> int:
    """GPUs of all instances."""
    return sum(role.gpus * role.together for role in job.roles)


def retry_details(job: JobState) -> Object:
    """Retries by cause."""
    platform = len(job.preemptions)
    return {"user": max(0, job.retries), "platform": platform, "resource": 0}


def summary(job: JobState) -> Object:
    """The item of a list."""
    created = milliseconds(job.created)
    return {
        "debugId": f"{job.namespace}.{job.label}",
        "name": job.name,
        "username": job.user,
        "state": state_of(job),
        "subState": sub_state_of(job),
        "executionType": "STOP" if job.state in {"STOPPING", "STOPPED"} else "START",
        "tags": list(job.tags),
        "retries": job.retries,
        "retryDetails": retry_details(job),
        "retryDelayTime": None,
        "submissionTime": created,
        "createdTime": created,
        "launchedTime": started_at(job),
        "completedTime": ended_at(job),
        "appExitCode": exit_code_of(job),
        "virtualCluster": job.cluster,
        "totalGpuNumber": gpus_of(job),
        "totalTaskNumber": sum(role.wanted for role in job.roles),
        "totalTaskRoleNumber": len(job.roles),
        "jobPriority": job.priority,
    }


def details(job: JobState) -> Object:
    """The whole job."""
    return {
        "debugId": f"{job.namespace}.{job.label}",
        "name": job.name,
        "frameworkName": full_name(job),
        "tags": list(job.tags),
        "jobPriority": job.priority,
        "jobStatus": _status(job),
        "taskRoles": {role.name: role_details(job, role) for role in job.roles},
    }


def _status(job: JobState) -> Object:
    found = summary(job)
    code = exit_code_of(job)
    kept = (
        *("username", "state", "subState", "executionType", "retries", "retryDetails", "retryDelayTime"),
        *("submissionTime", "createdTime", "virtualCluster"),
    )
    return {
        **{name: found[name] for name in kept},
        "attemptId": job.retries,
        "attemptState": sub_state_of(job),
        "completedTime": found["completedTime"],
        "appId": f"{job.namespace}.{job.label}",
        "appProgress": 1 if job.ended else 0,
        "appTrackingUrl": "",
        "appLaunchedTime": found["launchedTime"],
        "appCreatedTime": found["createdTime"],
        "appCompletedTime": found["completedTime"],
        "appExitCode": code,
        "appExitSpec": _exit_spec(code, job.why),
        "appExitTriggerMessage": None,
        "appExitTriggerTaskRoleName": None,
        "appExitTriggerTaskIndex": None,
        "appExitDiagnostics": _diagnostics(job),
        "appExitMessages": None,
        "appExitType": None if code is None else "Succeeded" if code == 0 else "Failed",
    }


def _diagnostics(job: JobState) -> str | None:
    """Why a job waits, failed, or was stopped."""
    if job.stopped_by:
        return f"stopped by {job.stopped_by}" + (f": {job.stopped_why}" if job.stopped_why else "")
    return job.why or None


def _exit_spec(code: int | None, why: str) -> Object | None:
    """What an exit code means."""
    if code is None or code == 0:
        return None
    return {
        "code": code,
        "phrase": "ContainerFailed" if code > 0 else "UnknownExit",
        "issuer": "USER_CONTAINER",
        "causer": "UNKNOWN",
        "type": "UNKNOWN_FAILURE",
        "stage": "RUNNING",
        "behavior": "UNKNOWN",
        "reaction": "RETRY_TO_MAX",
        "reason": why or f"the container ended with exit code {code}",
        "repro": [],
        "solution": [],
    }


def role_details(job: JobState, role: RoleState) -> Object:
    """A role with its instances. An instance without a pod waits."""
    found = {one.index: one for one in role.instances}
    # a user may ask for any number
    indexes = sorted(found.keys() | set(range(min(role.wanted, MAX_TASKS))))
    tasks = [task(job, role, index, found.get(index)) for index in indexes]
    return {"taskRoleStatus": {"name": role.name}, "taskStatuses": tasks}


def task(job: JobState, role: RoleState, index: int, one: Instance | None) -> Object:
    """An instance."""
    if one is None:
        state = "STOPPED" if job.state == "STOPPED" else "WAITING"
        one = Instance(role.name, index, "", "STOPPED" if state == "STOPPED" else "WAITING")
    created = milliseconds(job.created)
    log = f"/api/v2/jobs/{full_name(job)}/attempts/{job.retries}/taskRoles/{role.name}/taskIndex/{index}"
    return {
        "taskIndex": index,
        "taskState": task_state(one),
        "taskUid": one.pod,
        "containerId": one.container or one.pod or None,
        "containerIp": one.address or None,
        "containerNodeName": one.machine or None,
        "containerPorts": {},
        "containerGpus": None,
        "containerLog": f"{log}/attempts/{one.restarts}/logs" if one.pod else "",
        "containerExitCode": one.exit_code,
        "containerExitSpec": _exit_spec(one.exit_code, one.why),
        "containerExitDiagnostics": one.why or None,
        "retries": one.restarts,
        "retryDetails": {"user": one.restarts, "platform": 0, "resource": 0},
        "accountableRetries": one.restarts,
        "attemptId": one.restarts,
        "attemptState": task_state(one),
        "podUid": one.pod or None,
        "podName": one.pod or None,
        "podIp": one.address or None,
        "podNodeName": one.machine or None,
        "createdTime": created,
        "currentAttemptLaunchedTime": milliseconds(one.started),
        "launchedTime": milliseconds(one.started),
        "currentAttemptCompletedTime": milliseconds(one.finished),
        "completedTime": milliseconds(one.finished),
    }


# what the history of an instance says of the instance as a whole
_OF_TASK = (
    *("taskIndex", "taskUid", "taskState", "retries", "accountableRetries"),
    *("createdTime", "launchedTime", "completedTime"),
)


def task_history(job: JobState, role: RoleState, index: int) -> Object:
    """The attempts of an instance: the current one is the one that the cluster keeps."""
    one = next((it for it in role.instances if it.index == index), None)
    found = task(job, role, index, one)
    return {
        **{name: found[name] for name in _OF_TASK},
        "jobName": job.name,
        "userName": job.user,
        "username": job.user,
        "taskRoleName": role.name,
        "frameworkName": full_name(job),
        "jobAttemptId": job.retries,
        "attempts": [
            {
                **found,
                "taskAttemptId": found["attemptId"],
                "historyTime": None,
                "currentAttemptCreatedTime": found["createdTime"],
            }
        ],
    }


def attempt(job: JobState, number: int) -> Object:
    """An attempt of a job, in its history."""
    latest = number == job.retries
    found = details(job)
    return {
        "jobName": job.name,
        "frameworkName": full_name(job),
        "userName": job.user,
        "state": found["jobStatus"]["state"] if latest else "FAILED",
        "originalName": job.name,
        "attemptIndex": number,
        "isLatest": latest,
        "jobStartedTime": found["jobStatus"]["createdTime"],
        "appId": found["jobStatus"]["appId"],
        "jobPriority": job.priority,
        "virtualCluster": job.cluster,
        "totalGpuNumber": gpus_of(job),
        "totalTaskNumber": sum(role.wanted for role in job.roles),
        "totalTaskRoleNumber": len(job.roles),
        "jobStatus": found["jobStatus"] if latest else None,
        "taskRoles": found["taskRoles"] if latest else {},
    }


def by_name(jobs: Iterable[JobState]) -> JobState | None:
    """Of jobs of one name the one that users mean: an existing one, else the latest."""
    return max(jobs, key=lambda job: (not job.gone, job.created), default=None)
