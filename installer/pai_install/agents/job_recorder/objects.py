"""Kubernetes objects: which job they belong to, and the part of them that a record keeps. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pai_install.agents.common.values import Json, child, fitting, meta, number, rows, text

# label of a job's owner; users cannot set it to another user
USER = "pai-install/user"
_OURS = "pai-install/"
# groups of jobs, the label by which pods of theirs name them, that of the role, and those of the number.
# JobSets make Jobs, so the pods of one have both marks: the first counts.
MARKS = (
    (
        "jobset.x-k8s.io",
        "jobset.sigs.k8s.io/jobset-name",
        "jobset.sigs.k8s.io/replicatedjob-name",
        ("jobset.sigs.k8s.io/job-index", "batch.kubernetes.io/job-completion-index"),
    ),
    (
        "kubeflow.org",
        "training.kubeflow.org/job-name",
        "training.kubeflow.org/replica-type",
        ("training.kubeflow.org/replica-index",),
    ),
    ("batch.volcano.sh", "volcano.sh/job-name", "volcano.sh/task-spec", ("volcano.sh/task-index",)),
    ("batch", "batch.kubernetes.io/job-name", "", ("batch.kubernetes.io/job-completion-index",)),
)
STOPPED_BY, STOPPED_WHY = "pai-install/stopped-by", "pai-install/stopped-why"
# characters of a message, of a status, of a specification, and of labels; number of conditions
MAX_TEXT, _MOST_STATUS, _MOST_SPEC, _MOST_WORDS, _MOST_ROWS = 400, 32 * 1024, 32 * 1024, 16 * 1024, 20
# characters of annotations, which include the compressed file of the job
_MOST_NOTES = 64 * 1024
ENDED_PHASES = ("Succeeded", "Failed")
# of a spec: what says how many pods there are, of which roles, devices and queues
_OUTLINE = frozenset(
    (
        *("replicatedJobs", "tasks", "template", "spec", "name", "replicas", "parallelism", "completions"),
        *("containers", "resources", "requests", "limits", "schedulerName", "priorityClassName", "priorityClass"),
        *("queue", "runPolicy", "schedulingPolicy"),
    )
)
_WHOLE = frozenset(("requests", "limits"))
# of Kubeflow: a mapping of roles
_ROLES = "ReplicaSpecs"


def is_pod(item: Json) -> bool:
    """Whether it is a pod."""
    return item.get("kind") == "Pod"


def is_made(item: Json) -> bool:
    """Whether it is a part of something else, such as a pod of a Job or a Job of a JobSet."""
    return any(owner.get("controller") for owner in rows(child(item, "metadata").get("ownerReferences")))


def is_job(item: Json) -> bool:
    """Whether it is a job itself, as a pod that nothing made is."""
    return bool(owner_of(item)) and not is_made(item)


def owner_of(item: Json) -> str:
    """Returns the owner, or "" for an object without one."""
    return text(child(item, "metadata", "labels").get(USER))


def job_of(item: Json) -> tuple[str, str]:
    """Group and name of the job that an object is, or that a pod is of."""
    if is_pod(item) and is_made(item):
        labels = child(item, "metadata", "labels")
        for group, mark, _, _ in MARKS:
            if text(labels.get(mark)):
                return group, text(labels[mark])
    return text(item.get("apiVersion")).rpartition("/")[0], meta(item, "name")


def stopped_by(job: Json) -> tuple[str, str]:
    """Returns who stopped the job and the reason, each "" if unknown."""
    notes = child(job, "metadata", "annotations")
    return text(notes.get(STOPPED_BY)), text(notes.get(STOPPED_WHY))[:MAX_TEXT]


def kept_job(job: Json) -> dict[str, Any]:
    """Returns its names and marks, the outline of its requests, and its status."""
    outline = _outline(child(job, "spec"))
    # A user may write a spec of megabytes, and its record must fit into a ConfigMap.
    spec = outline if len(json.dumps(outline)) <= _MOST_SPEC else {}
    what = {"apiVersion": _name(job.get("apiVersion")), "kind": _name(job.get("kind"))}
    if is_pod(job):
        pod = kept_pod(job)
        return {**what, **pod, "spec": {**spec, **pod["spec"]}}
    return {**what, "metadata": _metadata(job), "spec": spec, "status": _status(child(job, "status"))}


def _metadata(item: Json) -> dict[str, Any]:
    metadata = child(item, "metadata")
    kept = {
        name: _name(metadata[name]) for name in ("name", "namespace", "uid", "creationTimestamp") if name in metadata
    }
    notes = {name: note for name, note in child(metadata, "annotations").items() if name.startswith(_OURS)}
    words = {name: text(note) for name, note in notes.items()}
    return {**kept, "labels": _words(child(metadata, "labels")), "annotations": fitting(words, _MOST_NOTES)}


def _name(value: Any) -> str:
    return text(value)[:MAX_TEXT]


def _words(value: Json) -> dict[str, str]:
    return fitting({name: text(word) for name, word in value.items()}, _MOST_WORDS)


def _outline(value: Any, *, all_of: bool = False) -> Any:
    if isinstance(value, list):
        return [_outline(row) for row in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: below if name in _WHOLE else _outline(below, all_of=name.endswith(_ROLES))
        for name, below in value.items()
        if all_of or name in _OUTLINE or name.endswith(_ROLES)
    }


def _status(status: Json) -> Json:
    """The whole status, or of a large one the part that tells how the job ended."""
    if len(json.dumps(status)) <= _MOST_STATUS:
        return status
    conditions = [_short(row) for row in rows(status.get("conditions"))][-_MOST_ROWS:]
    return {**_short(status), "state": _short(child(status, "state")), "conditions": conditions}


def kept_pod(pod: Json) -> dict[str, Any]:
    """Its names, its node, and the state of its containers, the job's own first."""
    status, own = child(pod, "status"), container_of(pod)
    words = {name: status[name] for name in ("phase", "reason", "message", "startTime") if name in status}
    false = [_short(row) for row in rows(status.get("conditions")) if row.get("status") == "False"]
    containers = [
        {"name": _name(row.get("name")), "restartCount": number(row.get("restartCount")) or 0, "state": _state(row)}
        for row in rows(status.get("containerStatuses"))
    ]
    # The kubelet sorts these states by name, and readers show the first row.
    containers.sort(key=lambda row: row["name"] != own)
    return {
        "metadata": _metadata(pod),
        "spec": {"nodeName": _name(child(pod, "spec").get("nodeName"))},
        "status": {**_short(words), "conditions": false[:_MOST_ROWS], "containerStatuses": containers[:_MOST_ROWS]},
    }


def _state(container: Json) -> Json:
    states = child(container, "state")
    return {name: _short(child(states, name)) for name in ("waiting", "running", "terminated") if name in states}


def _short(row: Json) -> dict[str, Any]:
    """Returns the strings and numbers of a row. Long strings are cut."""
    short = {name: text(value)[:MAX_TEXT] if isinstance(value, str) else value for name, value in row.items()}
    return fitting({name: value for name, value in short.items() if isinstance(value, (str, int, float))}, _MOST_WORDS)


def pod_key(pod: Json) -> str:
    """Returns the place of a pod in its job, shared by its replacements: role and number, else the name."""
    labels = child(pod, "metadata", "labels")
    for _, mark, role, numbers in MARKS:
        found = [text(labels.get(name)) for name in numbers]
        if text(labels.get(mark)) and found[-1]:
            return _name("/".join((text(labels.get(role)), *found)))
    return _name(meta(pod, "name"))


def container_of(pod: Json) -> str:
    """Returns the container of the job's log, which is the first one."""
    return next((text(row.get("name")) for row in rows(child(pod, "spec").get("containers"))), "")


def is_over(pod: Json) -> bool:
    """Whether its containers no longer write."""
    if text(child(pod, "status").get("phase")) in ENDED_PHASES:
        return True
    states = [child(row, "state") for row in rows(child(pod, "status").get("containerStatuses"))]
    return bool(states) and all("terminated" in state for state in states)


def is_deleting(pod: Json) -> bool:
    """Whether it is being deleted."""
    return bool(meta(pod, "deletionTimestamp"))


def is_refused(pod: Json) -> bool:
    """Whether its machine refused it: it has failed, says why, and no container of it ever ran."""
    status = child(pod, "status")
    kinds = ("initContainerStatuses", "containerStatuses")
    states = [child(row, "state") for kind in kinds for row in rows(status.get(kind))]
    ran = any("running" in state or "terminated" in state for state in states)
    return text(status.get("phase")) == "Failed" and bool(text(status.get("reason"))) and not ran


def has_written(pod: Json) -> bool:
    """Whether a container of it has started, so that it may have a log."""
    states = [child(row, "state") for row in rows(child(pod, "status").get("containerStatuses"))]
    return any("running" in state or "terminated" in state for state in states)
