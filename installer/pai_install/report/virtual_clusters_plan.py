"""The effects of a change of virtual clusters, as data, as text, and as the schema of the data. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pai_install.json_schema import closed_object, published
from pai_install.schedulers.usage import Usage
from pai_install.scheduling.change import Affected, QuotaChange, Running, affected, changes
from pai_install.scheduling.model import BACKENDS, Scheduling
from pai_install.scheduling.usage.model import SeenJob

VIRTUAL_CLUSTERS_PLAN_SCHEMA_VERSION = 1
_TEXT: dict[str, Any] = {"type": "string"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}


@dataclass(frozen=True, slots=True)
class ClustersChange:
    """before, after: the scheduler, or "". orphans: unfinished jobs that lose their queue, because their virtual
    cluster is removed or leaves the namespace.

    unknown: changed virtual clusters with unknown usage of their jobs.
    """

    before: str
    after: str
    changes: tuple[QuotaChange, ...]
    affected: tuple[Affected, ...] = ()
    orphans: tuple[SeenJob, ...] = ()
    unknown: tuple[str, ...] = ()


def clusters_change(before: Scheduling | None, after: Scheduling | None, usage: Usage | None) -> ClustersChange:
    """Returns the change. before: last applied to the cluster, None for nothing. usage: of `before`, None
    without it.
    """
    told = changes(_or_none(before), _or_none(after))
    names = "" if before is None else before.backend, "" if after is None else after.backend
    if usage is None:
        return ClustersChange(*names, told)
    running = [Running(use.cluster, use.sku, use.units) for use in usage.uses.values()]
    gone = {change.cluster for change in told if change.kind == "goes"}
    left = _submitters(before) - _submitters(after)
    orphans = tuple(job for job in usage.jobs if job.cluster in gone or (job.cluster, _namespace(job)) in left)
    unknown = tuple(dict.fromkeys(it.cluster for it in told if it.cluster in usage.unknown))
    return ClustersChange(*names, told, affected(told, running), orphans, unknown)


def _submitters(scheduling: Scheduling | None) -> frozenset[tuple[str, str]]:
    """Returns pairs of virtual cluster and namespace with permission to submit."""
    clusters = scheduling.clusters if scheduling is not None else ()
    return frozenset((cluster.name, namespace) for cluster in clusters for namespace in cluster.namespaces)


def _namespace(job: SeenJob) -> str:
    return job.name.partition("/")[0]


def _or_none(scheduling: Scheduling | None) -> Scheduling:
    return scheduling if scheduling is not None else Scheduling("default", {}, ())


def plan_data(change: ClustersChange) -> dict[str, Any]:
    """The published form."""
    return {
        "schema_version": VIRTUAL_CLUSTERS_PLAN_SCHEMA_VERSION,
        "scheduler": {"before": change.before or None, "after": change.after or None},
        "changes": [
            {"virtual_cluster": it.cluster, "sku": it.sku, "kind": it.kind, "before": it.before, "after": it.after}
            for it in change.changes
        ],
        "affected": [
            {"virtual_cluster": it.cluster, "sku": it.sku, "units": it.units, "removed": it.removed}
            for it in change.affected
        ],
        "orphans": [{"virtual_cluster": it.cluster, "job": it.name, "waits": it.waits} for it in change.orphans],
        "unknown": list(change.unknown),
    }


def plan_text(change: ClustersChange) -> str:
    """Returns a line for each change, then the owners of affected jobs."""
    lines = (
        [] if change.before == change.after else [f"scheduler: {change.before or 'none'} -> {change.after or 'none'}"]
    )
    lines += [str(it) for it in change.changes]
    if not lines:
        return "the cluster has these virtual clusters already\n"
    jobs = [str(it) for it in change.affected]
    jobs += _orphans_text(change)
    jobs += [f"{name}: not known what its jobs use, as it shares namespaces" for name in change.unknown]
    lines += ["", "jobs:", *(f"  {it}" for it in jobs or ["none is touched"])]
    return "".join(f"{line}\n" for line in lines)


def _orphans_text(change: ClustersChange) -> list[str]:
    gone = {it.cluster for it in change.changes if it.kind == "goes"}
    return [
        f"{it.cluster} {'is to go' if it.cluster in gone else f'leaves namespace {_namespace(it)}'}: "
        f"{it.name} {'waits' if it.waits else 'runs'}"
        for it in change.orphans
    ]


def jobs_at_risk(change: ClustersChange) -> tuple[str, ...]:
    """Returns jobs that would lose their virtual cluster, or the usage of jobs with unknown names."""
    used = [
        str(it) for it in change.affected if it.removed and it.cluster not in {job.cluster for job in change.orphans}
    ]
    return (*_orphans_text(change), *used)


def schema() -> dict[str, Any]:
    """The JSON Schema of `plan_data`."""
    backend: dict[str, Any] = {"enum": [*BACKENDS, None], "description": "null: none"}
    quota = closed_object(
        virtual_cluster=_TEXT,
        sku={**_TEXT, "description": "empty: it has none"},
        kind={"enum": ["appears", "goes", "grows", "shrinks", "differs"]},
        before={**_COUNT, "description": "units that it is guaranteed, with those of machines of its own"},
        after=_COUNT,
    )
    touched = closed_object(
        virtual_cluster=_TEXT,
        sku=_TEXT,
        units={**_COUNT, "description": "units in use that it will no longer be guaranteed"},
        removed={"type": "boolean"},
    )
    orphan = closed_object(
        virtual_cluster=_TEXT, job={**_TEXT, "description": "NAMESPACE/NAME"}, waits={"type": "boolean"}
    )
    return published(
        "pai-install vc plan",
        VIRTUAL_CLUSTERS_PLAN_SCHEMA_VERSION,
        scheduler=closed_object(before=backend, after=backend),
        changes={"type": "array", "items": quota},
        affected={"type": "array", "items": touched},
        orphans={
            "type": "array",
            "items": orphan,
            "description": "jobs that lose their virtual cluster or its queue",
        },
        unknown={"type": "array", "items": _TEXT, "description": "those of which it is not known what jobs use"},
    )
