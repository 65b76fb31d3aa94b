"""What is kept of Kubernetes' objects: how they stand, not what they ask for. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]

JOB = "pai-install/job"
_ROLE = "pai-install/role"
_OURS = "pai-install/"
_INDEX = "batch.kubernetes.io/job-completion-index"
_INDEXES = (_INDEX, "volcano.sh/task-index")
_STOPPED_BY, _STOPPED_WHY = "pai-install/stopped-by", "pai-install/stopped-why"
# of a message, and of a whole status
_MOST_TEXT, _MOST_STATUS = 400, 32 * 1024
ENDED_PHASES = ("Succeeded", "Failed")


def child(value: Any, *path: str) -> Json:
    """The mapping at that path; empty where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def rows(value: Any) -> list[Json]:
    """The mappings in a list; empty for anything else."""
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """A string as it is; "" for anything else."""
    return value if isinstance(value, str) else ""


def meta(item: Json, name: str) -> str:
    """A word of its metadata."""
    return text(child(item, "metadata").get(name))


def job_label(item: Json) -> str:
    """The job that an object is, or belongs to; empty where it says none."""
    return text(child(item, "metadata", "labels").get(JOB))


def is_job(item: Json) -> bool:
    """Whether it is a job itself and no part of one."""
    owners = rows(child(item, "metadata").get("ownerReferences"))
    return bool(job_label(item)) and not any(owner.get("controller") for owner in owners)


def stopped_by(job: Json) -> tuple[str, str]:
    """Who stopped it, and why; empty where whoever removed it did not say."""
    notes = child(job, "metadata", "annotations")
    return text(notes.get(_STOPPED_BY)), text(notes.get(_STOPPED_WHY))[:_MOST_TEXT]


def kept_job(job: Json) -> dict[str, Any]:
    """Its names and marks, and its status."""
    metadata = child(job, "metadata")
    notes = {name: word for name, word in child(metadata, "annotations").items() if name.startswith(_OURS)}
    kept = {name: metadata[name] for name in ("name", "namespace", "uid", "creationTimestamp") if name in metadata}
    return {
        "apiVersion": text(job.get("apiVersion")),
        "kind": text(job.get("kind")),
        "metadata": {**kept, "labels": dict(child(metadata, "labels")), "annotations": notes},
        "status": _status(child(job, "status")),
    }


def _status(status: Json) -> Json:
    """All of it but for one that is enormous: of that the words that say how it ended."""
    if len(json.dumps(status)) <= _MOST_STATUS:
        return status
    conditions = [_short(row) for row in rows(status.get("conditions"))][-20:]
    rest = {name: value for name, value in status.items() if isinstance(value, (str, int))}
    return {**rest, "state": child(status, "state"), "conditions": conditions}


def kept_pod(pod: Json) -> dict[str, Any]:
    """Its names, its machine, and how its containers stand."""
    metadata, status = child(pod, "metadata"), child(pod, "status")
    notes = {name: word for name, word in child(metadata, "annotations").items() if name.startswith(_OURS)}
    kept = {name: metadata[name] for name in ("name", "namespace", "uid", "creationTimestamp") if name in metadata}
    words = {name: status[name] for name in ("phase", "reason", "message", "startTime") if name in status}
    false = [_short(row) for row in rows(status.get("conditions")) if row.get("status") == "False"]
    containers = [
        {"name": text(row.get("name")), "restartCount": row.get("restartCount", 0), "state": _state(row)}
        for row in rows(status.get("containerStatuses"))
    ]
    return {
        "metadata": {**kept, "labels": dict(child(metadata, "labels")), "annotations": notes},
        "spec": {"nodeName": text(child(pod, "spec").get("nodeName"))},
        "status": {**_short(words), "conditions": false, "containerStatuses": containers},
    }


def _state(container: Json) -> Json:
    return {name: _short(child(state)) for name, state in child(container, "state").items()}


def _short(row: Json) -> dict[str, Any]:
    return {name: value[:_MOST_TEXT] if isinstance(value, str) else value for name, value in row.items()}


def pod_key(pod: Json) -> str:
    """What a later pod of the same place in the job has in common with it: role and number, else the name."""
    labels = child(pod, "metadata", "labels")
    index = next((text(labels.get(name)) for name in _INDEXES if labels.get(name)), "")
    role = text(labels.get(_ROLE))
    return f"{role}/{index}" if role and index else meta(pod, "name")


def container_of(pod: Json) -> str:
    """The container whose log is the job's."""
    names = [text(row.get("name")) for row in rows(child(pod, "spec").get("containers"))]
    return "main" if "main" in names or not names else names[0]


def is_over(pod: Json) -> bool:
    """Whether its containers write nothing any more."""
    if text(child(pod, "status").get("phase")) in ENDED_PHASES:
        return True
    states = [child(row, "state") for row in rows(child(pod, "status").get("containerStatuses"))]
    return bool(states) and all("terminated" in state for state in states)


def is_going(pod: Json) -> bool:
    """Whether it is being deleted."""
    return bool(meta(pod, "deletionTimestamp"))


def has_written(pod: Json) -> bool:
    """Whether a container of it has started, so that it may have a log."""
    states = [child(row, "state") for row in rows(child(pod, "status").get("containerStatuses"))]
    return any("running" in state or "terminated" in state for state in states)


def has_ended(job: Json) -> bool:
    """Whether a job's own status says that it has ended, in the words of any of the kinds."""
    status = child(job, "status")
    held = {text(row.get("type")) for row in rows(status.get("conditions")) if row.get("status") == "True"}
    phase = text(child(status, "state").get("phase"))
    return bool(held & {"Completed", "Complete", "Failed", "Succeeded"}) or phase in {
        "Completed",
        "Failed",
        "Aborted",
        "Terminated",
    }
