"""The current usage of the virtual clusters by jobs, as a result and as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from pai_install.json_schema import Count, Report, ReportObject
from pai_install.report.table import table
from pai_install.report.virtual_clusters_unmet import unmet_text
from pai_install.schedulers.usage import Usage
from pai_install.scheduling.amounts import owned
from pai_install.scheduling.model import Backend, Scheduling, VirtualCluster
from pai_install.scheduling.usage.health import Unmet
from pai_install.scheduling.usage.model import Use
from pai_install.system.words import plural

_HEAD = ("NAME", "SKU", "GUARANTEED", "USED", "LENT", "BORROWED", "WAITING")
_SUPPLY_HEAD = ("SKU", "TOTAL", "USED", "UNASSIGNED")


class SupplyUsage(ReportObject):
    """The use of an SKU."""

    sku: str
    resource: str = Field(description="Resource of the devices. Empty: a unit is a core.")
    units: Count = Field(description="Units of present workers.")
    used: Count | None = Field(description="Units. null: unknown.")
    unassigned: Count = Field(description="Units that are guaranteed to no one.")


class QuotaUsage(ReportObject):
    """The use of a guarantee."""

    sku: str
    resource: str = Field(description="Resource of the devices. Empty: a unit is a core.")
    guaranteed: Count = Field(description="Units, with those of pinned machines.")
    used: Count | None = Field(description="Units. null: unknown.")
    lent: Count | None = Field(description="Units of the idle guarantee that others use. null: unknown.")
    borrowed: Count | None = Field(description="Units of `used` beyond the guarantee. null: unknown.")


class ResourceUnits(ReportObject):
    """A request of waiting jobs."""

    resource: str = Field(description="Empty: cores.")
    units: Count


class WaitingJobs(ReportObject):
    """Jobs without resources yet."""

    jobs: Count
    units: tuple[ResourceUnits, ...]


class ClusterUsage(ReportObject):
    """The use of a virtual cluster."""

    name: str
    quota: tuple[QuotaUsage, ...]
    running: Count | None = Field(description="Jobs. null: unknown.")
    waiting: WaitingJobs | None = Field(description="null: unknown.")


class QuotaUsageReport(Report, title="pai-install vc usage"):
    """The use of virtual clusters."""

    scheduler: Backend
    supply: tuple[SupplyUsage, ...]
    virtual_clusters: tuple[ClusterUsage, ...]
    unmet: tuple[Unmet, ...] = Field(description="Guarantees that cannot be met now.")


def quota_usage_report(scheduling: Scheduling, usage: Usage, name: str = "") -> QuotaUsageReport:
    """Returns the report. name: of a single virtual cluster. Empty: all."""
    rows = tuple(_cluster(scheduling, usage, one) for one in scheduling.clusters if name in ("", one.name))
    skus = [quota.sku for row in rows for quota in row.quota] if name else list(scheduling.supply)
    return QuotaUsageReport(
        scheduler=scheduling.backend,
        supply=tuple(_supply(scheduling, usage, sku) for sku in scheduling.supply if sku in skus),
        virtual_clusters=rows,
        unmet=tuple(one for one in usage.unmet if not name or name in one.clusters),
    )


def _supply(scheduling: Scheduling, usage: Usage, sku: str) -> SupplyUsage:
    known = not usage.unknown
    given = sum(share.units for one in scheduling.clusters if (share := one.share(sku)))
    return SupplyUsage(
        sku=sku,
        resource=scheduling.supply[sku].resource,
        units=scheduling.supply[sku].total,
        used=sum(use.units for use in usage.uses.values() if use.sku == sku) if known else None,
        unassigned=max(0, scheduling.free(sku) - given),
    )


def _cluster(scheduling: Scheduling, usage: Usage, cluster: VirtualCluster) -> ClusterUsage:
    jobs = [job for job in usage.jobs if job.cluster == cluster.name]
    waiting = [job for job in jobs if job.waits]
    resources = dict.fromkeys(resource for job in waiting for resource in job.units)
    known = cluster.name not in usage.unknown
    units = tuple(ResourceUnits(resource=it, units=sum(job.units.get(it, 0) for job in waiting)) for it in resources)
    return ClusterUsage(
        name=cluster.name,
        quota=tuple(_quotas(scheduling, usage, cluster, known=known)),
        running=len(jobs) - len(waiting) if known else None,
        waiting=WaitingJobs(jobs=len(waiting), units=units) if known else None,
    )


def _quotas(scheduling: Scheduling, usage: Usage, cluster: VirtualCluster, *, known: bool) -> Iterator[QuotaUsage]:
    for sku, supply in scheduling.supply.items():
        guaranteed = owned(scheduling, cluster, sku).units
        use = usage.uses.get((cluster.name, sku), Use(cluster.name, sku, 0))
        if guaranteed or use.units or cluster.share(sku) is not None:
            yield QuotaUsage(
                sku=sku,
                resource=supply.resource,
                guaranteed=guaranteed,
                used=use.units if known else None,
                lent=usage.lent.get((cluster.name, sku), 0) if known else None,
                borrowed=use.borrowed if known else None,
            )


def quota_usage_text(report: QuotaUsageReport) -> str:
    """Returns a table of the virtual clusters, one of the supply, and the guarantees that cannot be met now."""
    rows = [cells for row in report.virtual_clusters for cells in _cells(row)]
    supply = [tuple(map(_word, (one.sku, one.units, one.used, one.unassigned))) for one in report.supply]
    text = f"kept by {report.scheduler}\n\n{table([_HEAD, *rows])}"
    text += f"\n{table([_SUPPLY_HEAD, *supply])}" if supply else ""
    text += unmet_text(report.unmet)
    hidden = sorted(row.name for row in report.virtual_clusters if row.running is None)
    if hidden:
        text += f"\nnot known for {', '.join(hidden)}: they share namespaces, and their pods name no virtual cluster\n"
    return text


def _cells(row: ClusterUsage) -> Iterator[tuple[str, ...]]:
    """Yields a line for each SKU. The first line has its name and its pending jobs, which have no SKU yet."""
    name, waits = row.name, _waits(row.waiting)
    for quota in row.quota:
        yield (name, quota.sku, *map(_word, (quota.guaranteed, quota.used, quota.lent, quota.borrowed)), waits)
        name, waits = "", ""
    if not row.quota:
        yield (name, "none", "", "", "", "", waits)


def _word(value: object) -> str:
    return "?" if value is None else str(value)


def _waits(waiting: WaitingJobs | None) -> str:
    if waiting is None:
        return "?"
    units = ", ".join(f"{one.units} {one.resource or 'cores'}" for one in waiting.units)
    return plural(waiting.jobs, "job") + (f" for {units}" if units else "") if waiting.jobs else "none"
