"""Objects of the API -> the part that lists need, as compact text. Commands and environments are dropped. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pai_install.kube.objects import JsonObject, child, rows, text

Object = dict[str, Any]

# characters of a reduced object: a larger one has no status of use to a list
MAX_REDUCED = 256 * 1024
_METADATA = (
    *("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "labels", "annotations"),
    *("ownerReferences", "generation", "resourceVersion"),
)
_KEPT_NOTES = ("pai-install/", "scheduling.k8s.io/", "hivedscheduler.microsoft.com/", "kueue.x-k8s.io/")
_POD_SPEC = ("nodeName", "schedulerName", "priority", "priorityClassName")
_POD_STATUS = ("phase", "reason", "message", "startTime", "podIP", "conditions", "containerStatuses")
_CONTAINER = ("name", "resources")
# of a container's status
_CONTAINER_STATUS = ("name", "state", "ready", "restartCount", "containerID")
_NODE_SPEC = ("unschedulable", "taints")
_NODE_STATUS = ("conditions", "allocatable", "capacity", "addresses")


def pack(item: JsonObject) -> str:
    """A reduced object as text. "" for a large one."""
    found = json.dumps(item, separators=(",", ":"))
    return found if len(found) <= MAX_REDUCED else ""


def unpack(packed: str) -> JsonObject:
    """The object of a text of `pack`.

    Python's own parser is enough: the watch has limited these values, and the other parser takes six times as long.
    """
    found: Object = json.loads(packed)
    return found


def reduced_pod(pod: JsonObject) -> Object:
    """Names, requests, and the state of containers."""
    spec, status = child(pod, "spec"), child(pod, "status")
    kept = _picked(status, _POD_STATUS)
    if "containerStatuses" in kept:
        kept["containerStatuses"] = [_picked(row, _CONTAINER_STATUS) for row in rows(kept["containerStatuses"])[:16]]
    containers = [_picked(row, _CONTAINER) for row in rows(spec.get("containers"))[:16]]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(pod),
        "spec": {**_picked(spec, _POD_SPEC), "containers": containers},
        "status": kept,
    }


def reduced_node(node: JsonObject) -> Object:
    """Names, resources, conditions, and the version."""
    status = child(node, "status")
    version = _picked(child(status, "nodeInfo"), ("kubeletVersion",))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _picked(child(node, "metadata"), ("name", "labels", "creationTimestamp")),
        "spec": _picked(child(node, "spec"), _NODE_SPEC),
        "status": {**_picked(status, _NODE_STATUS), **({"nodeInfo": version} if version else {})},
    }


def reduced_other(item: JsonObject) -> Object:
    """A job, or an object of the scheduler: its pod templates are reduced."""
    head = {key: text(item.get(key)) for key in ("apiVersion", "kind")}
    return {
        **head,
        "metadata": _metadata(item),
        "spec": _outline(child(item, "spec")),
        "status": item.get("status", {}),
    }


def reduced_event(event: JsonObject) -> Object:
    """A warning and the object that it is about."""
    series = child(event, "series").get("lastObservedTime")
    return {
        "metadata": _picked(child(event, "metadata"), ("name", "namespace", "uid")),
        "involvedObject": _picked(child(event, "involvedObject"), ("uid", "kind", "namespace", "name")),
        "series": {"lastObservedTime": series},
        **_picked(event, ("type", "reason", "message", "lastTimestamp", "eventTime")),
    }


REDUCERS: Mapping[str, Callable[[JsonObject], Object]] = {
    "pods": reduced_pod,
    "nodes": reduced_node,
    "events": reduced_event,
}


def reduced(kind: str, item: JsonObject) -> Object:
    """The part of an object that is kept. kind: as kubectl names it."""
    return REDUCERS.get(kind, reduced_other)(item)


def _metadata(item: JsonObject) -> Object:
    kept = _picked(child(item, "metadata"), _METADATA)
    notes = child(kept, "annotations")
    kept["annotations"] = {
        name: note for name, note in notes.items() if name.startswith(_KEPT_NOTES) and name != "pai-install/job-file"
    }
    return kept


def _outline(value: Any, depth: int = 0) -> Any:  # noqa: ANN401 - any part of an object
    """A specification with pods reduced to the requests of their containers."""
    if depth > 12:
        return None
    if isinstance(value, list):
        return [_outline(one, depth + 1) for one in value]
    if not isinstance(value, Mapping):
        return value
    if isinstance(value.get("containers"), list):
        containers = [_picked(row, _CONTAINER) for row in rows(value["containers"])[:16]]
        return {**_picked(value, _POD_SPEC), "containers": containers}
    return {key: _outline(one, depth + 1) for key, one in value.items() if key != "annotations"}


def _picked(item: JsonObject, names: tuple[str, ...]) -> Object:
    return {name: item[name] for name in names if name in item}
