"""Kinds of jobs in requests to the API server: their pod templates, and the sites with these kinds. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pai_install.scheduling.admission import RequestKind
from pai_install.scheduling.job_kinds import KINDS, JobKind
from pai_install.site.services.virtual_clusters import SchedulerType

_CHANGES = ("CREATE", "UPDATE")


@dataclass(frozen=True, slots=True)
class LookedAt:
    """Read-only resources of users. everywhere: cluster-scoped, for administrators only."""

    group: str
    resources: tuple[str, ...]
    scheduler: SchedulerType | None = None
    everywhere: bool = False


LOOKED_AT: tuple[LookedAt, ...] = (
    LookedAt("", ("events", "persistentvolumeclaims", "resourcequotas", "limitranges")),
    LookedAt("kueue.x-k8s.io", ("localqueues", "workloads"), "kueue"),
    LookedAt("scheduling.volcano.sh", ("podgroups",), "volcano"),
    LookedAt("", ("nodes", "namespaces", "persistentvolumes"), everywhere=True),
    LookedAt("kueue.x-k8s.io", ("clusterqueues", "cohorts", "resourceflavors"), "kueue", everywhere=True),
    LookedAt("scheduling.volcano.sh", ("queues",), "volcano", everywhere=True),
)


def kinds_at(scheduler: SchedulerType | None) -> Sequence[JobKind]:
    """The kinds of jobs that a site with this scheduler may have, but for pods that no job made."""
    return tuple(kind for kind in KINDS if not kind.brought or scheduler in kind.brought)


def requests(kind: JobKind, *operations: str) -> RequestKind:
    """Requests of these operations on a kind. Kinds that others define are looked at in every version."""
    version = "*" if "." in kind.group else kind.version
    return RequestKind(kind.group, version, kind.resource, operations or _CHANGES)
