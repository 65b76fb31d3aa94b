"""Kinds of objects that are jobs: where the pods of each are described, and which scheduler's site has them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pai_install.scheduling.policy import RequestKind
from pai_install.site.services.virtual_clusters import SchedulerType

_CHANGES = ("CREATE", "UPDATE")


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of jobs. templates: an expression of CEL that gives the list of its pod templates.

    scheduler: the one that brings it; None: every site may have it.
    """

    group: str
    version: str
    resource: str
    templates: str
    scheduler: SchedulerType | None = None

    def asked(self, *operations: str) -> RequestKind:
        """Requests of these operations on it."""
        return RequestKind(self.group, self.version, self.resource, operations or _CHANGES)


@dataclass(frozen=True, slots=True)
class LookedAt:
    """What members look at and change nothing of. everywhere: it is in no namespace, so only administrators may."""

    group: str
    resources: tuple[str, ...]
    scheduler: SchedulerType | None = None
    everywhere: bool = False


def _replicas(field: str) -> str:
    specs = f"object.spec.{field}"
    return f"has({specs}) ? {specs}.map(r, has({specs}[r].template), {specs}[r].template) : []"


KINDS: tuple[JobKind, ...] = (
    JobKind("batch", "v1", "jobs", "[object.spec.template]"),
    JobKind("kubeflow.org", "*", "tfjobs", _replicas("tfReplicaSpecs")),
    JobKind("kubeflow.org", "*", "pytorchjobs", _replicas("pytorchReplicaSpecs")),
    JobKind("kubeflow.org", "*", "mpijobs", _replicas("mpiReplicaSpecs")),
    JobKind(
        "jobset.x-k8s.io",
        "*",
        "jobsets",
        "has(object.spec.replicatedJobs) ? object.spec.replicatedJobs.map(j, j.template.spec.template) : []",
        "kueue",
    ),
    JobKind(
        "batch.volcano.sh",
        "*",
        "jobs",
        "has(object.spec.tasks) ? object.spec.tasks.map(t, has(t.template), t.template) : []",
        "volcano",
    ),
)
# a pod that no job made describes itself
POD = JobKind("", "v1", "pods", "[object]")

LOOKED_AT: tuple[LookedAt, ...] = (
    LookedAt("", ("events", "persistentvolumeclaims", "resourcequotas", "limitranges")),
    LookedAt("kueue.x-k8s.io", ("localqueues", "workloads"), "kueue"),
    LookedAt("scheduling.volcano.sh", ("podgroups",), "volcano"),
    LookedAt("", ("nodes", "namespaces", "persistentvolumes"), everywhere=True),
    LookedAt("kueue.x-k8s.io", ("clusterqueues", "cohorts", "resourceflavors"), "kueue", everywhere=True),
    LookedAt("scheduling.volcano.sh", ("queues",), "volcano", everywhere=True),
)


def kinds_at(scheduler: SchedulerType | None) -> Sequence[JobKind]:
    """The kinds of jobs that a site with this scheduler may have."""
    return tuple(kind for kind in KINDS if kind.scheduler in (None, scheduler))
