"""The effects of a change of virtual clusters, as a result and as text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import Field

from pai_install.json_schema import Report, ReportObject
from pai_install.schedulers.hived.cells import lost_cell_types
from pai_install.schedulers.usage import Usage
from pai_install.scheduling.change import Affected, QuotaChange, Running, affected, changes
from pai_install.scheduling.model import Backend, Scheduling
from pai_install.scheduling.usage.model import UnfinishedJob


@dataclass(frozen=True, slots=True)
class ClustersChange:
    """before, after: the scheduler. orphans: unfinished jobs that lose their queue, because their virtual
    cluster is removed or leaves the namespace.

    unknown: changed virtual clusters with unknown usage of their jobs. evictable: running jobs of virtual clusters that
    lose guaranteed devices, which the scheduler may evict for others.
    """

    before: Backend | None
    after: Backend | None
    changes: tuple[QuotaChange, ...]
    affected: tuple[Affected, ...] = ()
    orphans: tuple[UnfinishedJob, ...] = ()
    unknown: tuple[str, ...] = ()
    evictable: tuple[UnfinishedJob, ...] = ()


def clusters_change(before: Scheduling | None, after: Scheduling | None, usage: Usage | None) -> ClustersChange:
    """Returns the change. before: last applied to the cluster, None for nothing. usage: of `before`, None
    without it.
    """
    lines = changes(_or_none(before), _or_none(after))
    names = None if before is None else before.backend, None if after is None else after.backend
    if usage is None:
        return ClustersChange(*names, lines)
    running = [Running(use.cluster, use.sku, use.units) for use in usage.uses.values()]
    gone = {change.cluster for change in lines if change.kind == "goes"}
    left = _submitters(before) - _submitters(after)
    orphans = tuple(job for job in usage.jobs if job.cluster in gone or (job.cluster, _namespace(job)) in left)
    unknown = tuple(dict.fromkeys(it.cluster for it in lines if it.cluster in usage.unknown))
    losses = affected(lines, running)
    evictable = tuple(_evictable(before, after, losses, usage.jobs)) if before and after else ()
    return ClustersChange(*names, lines, losses, orphans, unknown, evictable)


def _evictable(
    before: Scheduling, after: Scheduling, losses: Iterable[Affected], jobs: Iterable[UnfinishedJob]
) -> Iterator[UnfinishedJob]:
    """Yields the running jobs that are guaranteed their devices now, and may not be then."""
    lost = {(it.cluster, before.supply[it.sku].resource) for it in losses if not it.removed and it.sku in before.supply}
    renamed = lost_cell_types(before, after) if before.backend == after.backend == "hived" else {}
    # Jobs of a removed virtual cluster are orphans. They are reported there and not a second time here.
    gone = {it.name for it in before.clusters} - {it.name for it in after.clusters}
    for job in jobs:
        loses = any((job.cluster, resource) in lost for resource in job.units) or job.cluster in renamed
        if loses and not job.waits and job.cluster not in gone:
            yield job


def _submitters(scheduling: Scheduling | None) -> frozenset[tuple[str, str]]:
    """Returns pairs of virtual cluster and namespace with permission to submit."""
    clusters = scheduling.clusters if scheduling is not None else ()
    return frozenset((cluster.name, namespace) for cluster in clusters for namespace in cluster.namespaces)


def _namespace(job: UnfinishedJob) -> str:
    return job.name.partition("/")[0]


def _or_none(scheduling: Scheduling | None) -> Scheduling:
    return scheduling if scheduling is not None else Scheduling("default", {}, ())


class SchedulerChange(ReportObject):
    """The scheduler before and after. null: none."""

    before: Backend | None
    after: Backend | None


class OrphanedJob(ReportObject):
    """An unfinished job that loses its queue."""

    virtual_cluster: str = Field(validation_alias="cluster")
    job: str = Field(validation_alias="name", description="NAMESPACE/NAME.")
    waits: bool


class EvictableJob(ReportObject):
    """A running job that the scheduler may evict after the change."""

    virtual_cluster: str = Field(validation_alias="cluster")
    job: str = Field(validation_alias="name", description="NAMESPACE/NAME.")


class ClustersChangeReport(Report, title="pai-install vc plan"):
    """The effects of a change of virtual clusters."""

    scheduler: SchedulerChange
    changes: tuple[QuotaChange, ...]
    affected: tuple[Affected, ...]
    orphans: tuple[OrphanedJob, ...] = Field(description="Jobs that lose their virtual cluster or its queue.")
    unknown: tuple[str, ...] = Field(description="Virtual clusters with unknown usage of their jobs.")
    evictable: tuple[EvictableJob, ...] = Field(
        description="Running jobs that may be evicted, because their virtual cluster loses guaranteed devices."
    )


def clusters_change_report(change: ClustersChange) -> ClustersChangeReport:
    """The report of a change."""
    return ClustersChangeReport(
        scheduler=SchedulerChange(before=change.before, after=change.after),
        changes=change.changes,
        affected=change.affected,
        orphans=tuple(map(OrphanedJob.model_validate, change.orphans)),
        unknown=change.unknown,
        evictable=tuple(map(EvictableJob.model_validate, change.evictable)),
    )


def plan_text(change: ClustersChange) -> str:
    """Returns a line for each change, then the owners of affected jobs."""
    lines = (
        [] if change.before == change.after else [f"scheduler: {change.before or 'none'} -> {change.after or 'none'}"]
    )
    lines += [str(it) for it in change.changes]
    if change.evictable and not lines:
        lines = ["the names of HiveD's cells change"]
    if not lines:
        return "the cluster has these virtual clusters already\n"
    jobs = [str(it) for it in change.affected]
    jobs += [f"{it.cluster}: {it.name} may be evicted once others need its devices" for it in change.evictable]
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
