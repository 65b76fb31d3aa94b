"""Consequences of draining a node for its pods. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pai_install.kube.model import Pod
from pai_install.kube.workloads import PodDisruptionBudget

# Owners that start another pod elsewhere; a pod of any other owner, such as a Job, loses its work.
_MOVES = ("ReplicaSet", "StatefulSet", "ReplicationController")


def to_evict(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """The pods to evict: not a DaemonSet's, which tolerate the cordon, nor the kubelet's own, nor finished ones."""
    return tuple(
        pod for pod in pods if not (pod.mirror or pod.finished or (pod.owner and pod.owner.kind == "DaemonSet"))
    )


def unmanaged(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Pods without a controller."""
    return tuple(pod for pod in pods if pod.owner is None and not pod.terminating)


def moves(pod: Pod) -> bool:
    """Whether its owner starts another in its place, with no work lost."""
    return pod.owner is not None and pod.owner.kind in _MOVES


def jobs_among(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Returns the pods that lose work on eviction."""
    return tuple(pod for pod in pods if not moves(pod))


def blocking(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> tuple[PodDisruptionBudget, ...]:
    """Returns the budgets that block an eviction of the pod now. A budget without a number allows none."""
    return tuple(one for one in budgets if one.covers(pod.namespace, pod.labels) and not one.allowed)
