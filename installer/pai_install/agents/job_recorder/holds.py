"""Objects of the API server -> when a pod got devices, when it lost them, and why. Pure.

The times are those of the objects, so they do not depend on when the recorder sees them. A node writes the status of
its pods, so its times count only between the creation of the pod and now.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pai_install.agents.common.ledger import COMPLETED, EVICTED, FAILED, PREEMPTED, STOPPED, Sample
from pai_install.agents.common.utilization import utilization_of
from pai_install.agents.common.values import Json, child, meta, number, rows, seconds, text
from pai_install.agents.job_recorder.objects import ENDED_PHASES

_HIVED_MARKER = "hivedscheduler.microsoft.com/pod-scheduling-enable"
# HiveD writes the indexes of the devices here; the API server lets no user write it
_HIVED_CELLS = "hivedscheduler.microsoft.com/pod-leaf-cell-isolation"
_DEVICE = re.compile(r"(nvidia|amd)\.com/.+|.+/gpu")
_COUNT = re.compile(r"[0-9]{1,4}")
_MAX_CELLS = 1000
_BY_SCHEDULER = "PreemptionByScheduler"


@dataclass(frozen=True)
class End:
    """When a pod lost its devices. estimated: no object said it."""

    at: int
    reason: str
    estimated: bool = False


def devices_of(pod: Json) -> int:
    """The number of devices that the pod holds while it has a node."""
    spec = child(pod, "spec")
    main = sum(_cells_of(row) for row in rows(spec.get("containers")))
    # Init containers run before the others, so the kubelet counts the larger need and not the sum.
    return max([main, *(_cells_of(row) for row in rows(spec.get("initContainers")))]) or _cells(pod)


def _cells_of(container: Json) -> int:
    limits = child(container, "resources", "limits")
    return sum(count(limits[name]) for name in limits if is_device(name))


def is_device(name: object) -> bool:
    """Whether it is the resource of a device that computes."""
    return _DEVICE.fullmatch(text(name)) is not None


def count(value: object) -> int:
    """The number of devices in a quantity, 0 for any other value."""
    word = str(number(value)) if isinstance(value, int) else text(value)
    return int(word) if _COUNT.fullmatch(word) else 0


def _cells(pod: Json) -> int:
    containers = rows(child(pod, "spec").get("containers"))
    if not any(_HIVED_MARKER in child(row, "resources", "limits") for row in containers):
        return 0
    given = text(child(pod, "metadata", "annotations").get(_HIVED_CELLS))[:_MAX_CELLS]
    return len([index for index in given.split(",") if index.strip()])


def created_of(item: Json) -> int:
    """The time of its creation, 0 for an unknown one."""
    return int(seconds(meta(item, "creationTimestamp")))


def node_of(pod: Json) -> str:
    """The node of the pod, or "" before it has one."""
    return text(child(pod, "spec").get("nodeName"))


def start_of(pod: Json, now: float) -> int | None:
    """When the pod got its node and its devices, or None while its status does not say it."""
    if not node_of(pod):
        return None
    bound = since(pod, "PodScheduled", "True") or int(seconds(text(child(pod, "status").get("startTime"))))
    return _between(created_of(pod), bound, now) if bound else None


def end_of(pod: Json, start: int, now: float, *, deleted: bool) -> End | None:
    """When and why the pod lost its devices, or None while it holds them. deleted: its object is gone."""
    phase = text(child(pod, "status").get("phase"))
    if phase not in ENDED_PHASES and not deleted:
        return None
    finished, deletion = _finished(pod), int(seconds(meta(pod, "deletionTimestamp")))
    # In the order of trust: what a container did, what a user asked for, what a controller saw.
    ended_at = finished or deletion or since(pod, "DisruptionTarget", "True") or since(pod, "Ready", "False")
    ended = {"Succeeded": COMPLETED, "Failed": FAILED}.get(phase, "")
    reason = _disruption(pod) or (STOPPED if deletion and phase != "Succeeded" else ended) or STOPPED
    return End(_between(start, ended_at or int(now), now), reason, estimated=not finished and not deletion)


def _finished(pod: Json) -> int:
    """The end of the last container, or 0 if one may still run."""
    states = [child(row, "state") for row in rows(child(pod, "status").get("containerStatuses"))]
    ends = [int(seconds(text(child(state, "terminated").get("finishedAt")))) for state in states]
    return max(ends) if ends and all(ends) else 0


def _disruption(pod: Json) -> str:
    for row in rows(child(pod, "status").get("conditions")):
        if row.get("type") == "DisruptionTarget" and row.get("status") == "True":
            return PREEMPTED if row.get("reason") == _BY_SCHEDULER else EVICTED
        if (row.get("type"), row.get("status"), row.get("reason")) == ("Ready", "False", "Evict"):
            return PREEMPTED  # by Volcano
    return ""


def since(item: Json, kind: str, status: str) -> int:
    """Since when a condition has that status, or 0 if it has another one."""
    found = rows(child(item, "status").get("conditions"))
    row = next((row for row in found if row.get("type") == kind and row.get("status") == status), {})
    return int(seconds(text(row.get("lastTransitionTime"))))


def _between(least: int, value: int, now: float) -> int:
    return max(least, min(value, int(now)))


def sample_of(pod: Json) -> Sample | None:
    """The last report of the GPU meter, or None without one."""
    use = utilization_of(pod)
    if use is None or use.work is None:
        return None
    return Sample(use.at, use.work.busy_ms // 1000, use.work.measured_ms // 1000)
