"""Jobs and pods as the API server gives them, with who they are made by."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

Object = dict[str, Any]

USER = "pai-install/user"


def job(name: str = "train", uid: str = "job-1", **more: Any) -> Object:
    """A batch Job of alice. more: status, notes, user, made: a second, space."""
    made = more.get("made", 0)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": more.get("space", "vision"),
            "uid": uid,
            "creationTimestamp": f"2026-01-01T00:00:{made:02}Z",
            "labels": {USER: more.get("user", "alice")},
            "annotations": more.get("notes", {}),
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {
            "parallelism": 2,
            "completions": 2,
            "completionMode": "Indexed",
            "template": {"spec": deepcopy(_SPEC)},
        },
        "status": more.get("status", {}),
    }


_SPEC: Object = {
    "containers": [
        {
            "name": "main",
            "image": "example.com/train:1",
            "env": [{"name": "TOKEN", "value": "planted"}],
            "resources": {"limits": {"nvidia.com/gpu": "2"}},
        }
    ]
}


def pod(index: int, uid: str = "", phase: str = "Running", **more: Any) -> Object:
    """A pod of that Job. more: made: a second, job, user, code, going, alone."""
    made, owner = more.get("made", 1), more.get("job", "train")
    labels = {
        USER: more.get("user", "alice"),
        "batch.kubernetes.io/job-name": owner,
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    ended = {"terminated": {"exitCode": more["code"]}} if "code" in more else None
    states: dict[str, Object] = {"Pending": {}, "Running": {"running": {}}}
    controller = [] if more.get("alone") else [{"kind": "Job", "name": owner, "controller": True}]
    found: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{owner}-{index}-{uid or index}",
            "namespace": "vision",
            "uid": uid or f"pod-{index}",
            "creationTimestamp": f"2026-01-01T00:00:{made:02}Z",
            "labels": labels,
            "ownerReferences": controller,
        },
        "spec": {**_SPEC, "nodeName": "g1"},
        "status": {
            "phase": phase,
            "containerStatuses": [{"name": "main", "state": ended or states.get(phase, {})}],
        },
    }
    if more.get("going"):
        found["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z"
    return found


def complete() -> Object:
    """The status of a job that ended well."""
    return {"conditions": [{"type": "Complete", "status": "True"}]}
