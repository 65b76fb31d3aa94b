"""One virtual cluster of a site, as a result and as text. Pure."""

from __future__ import annotations

from pydantic import Field

from pai_install.json_schema import Report
from pai_install.report.table import table
from pai_install.report.virtual_clusters import (
    SupplyRow,
    VirtualClusterRow,
    cluster_row,
    quota_cells,
    supply_row,
    supply_text,
)
from pai_install.scheduling.model import Backend, Scheduling

_HEAD = ("SKU", "GUARANTEED", "LENDS", "BORROWS")


class SchedulerReport(Report):
    """A report that begins with the scheduler."""

    scheduler: Backend


class VirtualClusterReport(VirtualClusterRow, SchedulerReport, title="pai-install vc show"):
    """A virtual cluster, and the supply of its SKUs."""

    supply: tuple[SupplyRow, ...] = Field(description="Supply of its SKUs.")


def virtual_cluster_report(scheduling: Scheduling, name: str) -> VirtualClusterReport:
    """The virtual cluster of that name. Raises KeyError for an unknown name."""
    row = cluster_row(scheduling, scheduling.cluster(name))
    skus = {one.sku for one in row.quota} | {one.sku for one in row.pinned}
    supply = tuple(supply_row(scheduling, one) for one in scheduling.supply.values() if one.sku in skus)
    return VirtualClusterReport(scheduler=scheduling.backend, **dict(row), supply=supply)


def virtual_cluster_text(report: VirtualClusterReport) -> str:
    """Returns its quota, its users, and the supply of its SKUs."""
    pinned = ", ".join(f"{one.machine} ({one.sku})" for one in report.pinned) or "none"
    lines = [
        f"{report.name}: kept by {report.scheduler}",
        f"  groups: {', '.join(report.groups) or 'everyone'}",
        f"  namespaces: {', '.join(report.namespaces) or 'none'}",
        f"  priorities: {report.priorities.usual} where a job names none, up to {report.priorities.highest}",
        f"  pinned machines: {pinned}",
    ]
    quota = table([_HEAD, *map(quota_cells, report.quota)]) if report.quota else "guaranteed nothing beside\n"
    text = "\n".join(lines) + f"\n\n{quota}"
    return f"{text}\n{supply_text(report.supply)}" if report.supply else text
