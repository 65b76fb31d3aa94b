"""Pods on lost nodes: deleted long ago, but no kubelet reports that they have ended. Pure.

Kubernetes waits for the node without limit, and the pod's gang waits, too. A Job with a pod failure policy creates no
new pod before the old one has ended. Volcano starts no gang while a pod of it is being deleted. For nodes that were
removed, Kubernetes' own garbage collector sets the pod to Failed and deletes it. The recorder does the same here.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

from pai_install.agents.common.values import Json, child, meta, rows, seconds, text
from pai_install.agents.job_recorder.objects import ENDED_PHASES, is_deleting

# seconds that a kubelet may be late, and between two looks at its node
LATE_S, AGAIN_S = 60, 30


@dataclass(frozen=True)
class Release:
    """To let go of a pod, if its node is not heard of. ended: whether the node has said that it has."""

    namespace: str
    pod: str
    uid: str
    node: str
    ended: bool


class LostPods:
    """Pods that are being deleted. Times are seconds since 1970."""

    def __init__(self, namespaces: frozenset[str]) -> None:
        self._namespaces = namespaces
        self._due: dict[str, tuple[float, Release]] = {}

    def see(self, pod: Json) -> None:
        """A pod as it is now."""
        uid, node = meta(pod, "uid"), text(child(pod, "spec").get("nodeName"))
        ended = text(child(pod, "status").get("phase")) in ENDED_PHASES
        if not is_deleting(pod) or not node or meta(pod, "namespace") not in self._namespaces:
            self._due.pop(uid, None)
        elif uid in self._due:
            at, release = self._due[uid]
            self._due[uid] = (at, replace(release, ended=ended))
        else:
            # deletionTimestamp includes the grace period of the pod, so only the kubelet's own delay is added.
            release = Release(meta(pod, "namespace"), meta(pod, "name"), uid, node, ended)
            self._due[uid] = (seconds(meta(pod, "deletionTimestamp")) + LATE_S, release)

    def gone(self, pod: Json) -> None:
        """A pod that was deleted."""
        self._due.pop(meta(pod, "uid"), None)

    def retain(self, uids: Container[str]) -> None:
        """Pods with other UIDs were deleted."""
        self._due = {uid: due for uid, due in self._due.items() if uid in uids}

    def due(self, now: float) -> list[Release]:
        """Returns pods with a node to check now. Each is returned again after AGAIN_S seconds."""
        found = [(uid, release) for uid, (at, release) in self._due.items() if at <= now]
        self._due.update({uid: (now + AGAIN_S, release) for uid, release in found})
        return [release for _, release in found]


def is_lost(node: Json) -> bool:
    """Whether the kubelet of the node stopped reporting. An unhealthy one reports, and may still use the devices."""
    found = (row for row in rows(child(node, "status").get("conditions")) if row.get("type") == "Ready")
    return any(row.get("status") == "Unknown" for row in found)
