"""A job as a JobSet: what Kueue queues, and what the other schedulers but Volcano are given. Pure."""

from __future__ import annotations

from typing import Any

from pai_install.jobs.compile.names import JobNames, names_of
from pai_install.jobs.compile.pod import Outline, PodExtras, pod_template
from pai_install.jobs.model import Job, Role
from pai_install.jobs.place import JobPlace

Object = dict[str, Any]

API, KIND = "jobset.x-k8s.io/v1alpha2", "jobsets.jobset.x-k8s.io"
_HOST = "{job}-{role}-0-{index}"
# the controller of Jobs adds -abcde
_SUFFIX = 6
_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
ENDLESS = 2**31 - 1


def outline_of(job: Job, place: JobPlace) -> Outline:
    """The job with the names that JobSet gives its pods."""
    names: JobNames = names_of(job, place.owner.namespace, _HOST, _SUFFIX)
    return Outline(job, place, names, _INDEX)


def job_set(gang: Outline, extras: dict[str, PodExtras], **more: str) -> Object:
    """The JobSet. extras: of each role, by its name. more: labels."""
    roles = [
        {
            "name": gang.names.roles[role.name],
            "replicas": 1,
            "template": {"spec": _job(gang, role, extras[role.name])},
        }
        for role in gang.job.roles
    ]
    retries = gang.job.retries
    spec = {
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "successPolicy": _success(gang),
        "failurePolicy": {"maxRestarts": ENDLESS if retries is None else retries},
        "replicatedJobs": roles,
    }
    return {"apiVersion": API, "kind": "JobSet", "metadata": gang.metadata(**more), "spec": spec}


def _success(gang: Outline) -> Object:
    """The first role that has as many as it needs ends the job; where none says how many, all of all have to."""
    named = [gang.names.roles[role.name] for role in gang.job.roles if role.min_succeeded is not None]
    return {"operator": "Any", "targetReplicatedJobs": named} if named else {"operator": "All"}


def _job(gang: Outline, role: Role, extras: PodExtras) -> Object:
    """The role as a batch Job. A pod that lost its machine is made again and has not failed."""
    enough = role.min_succeeded if role.min_succeeded is not None else role.instances
    lost = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    return {
        "completionMode": "Indexed",
        "parallelism": role.instances,
        "completions": role.instances,
        "backoffLimitPerIndex": role.retries,
        "maxFailedIndexes": role.instances if role.min_failed is None else role.min_failed - 1,
        "podFailurePolicy": {"rules": [lost]},
        **({"successPolicy": {"rules": [{"succeededCount": enough}]}} if enough < role.instances else {}),
        "template": pod_template(gang, role, extras),
    }
