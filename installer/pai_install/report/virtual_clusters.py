"""The virtual clusters of a site, and the guarantees that cannot be met now, as a result and as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import Field

from pai_install.json_schema import Count, Report, ReportObject
from pai_install.report.table import table
from pai_install.report.virtual_clusters_unmet import unmet_text
from pai_install.scheduling.model import Backend, Level, Priority, Scheduling, Share, Supply, VirtualCluster
from pai_install.scheduling.usage.health import Unmet

NONE = "this site has no virtual clusters: sections scheduler and virtual-clusters of services-configuration.yaml\n"
_HEAD = ("NAME", "SKU", "GUARANTEED", "LENDS", "BORROWS", "PINNED", "GROUPS", "PRIORITIES")
_SUPPLY_HEAD = ("SKU", "MACHINES", "TOTAL", "PINNED", "GUARANTEED", "UNASSIGNED")


class SupplyRow(ReportObject):
    """The capacity of an SKU's present machines."""

    sku: str
    resource: str = Field(description="Resource of the devices. Empty: a unit is a core.")
    machines: Count = Field(description="Present workers.")
    units: Count = Field(description="Devices or cores of the present workers.")
    pinned: Count = Field(description="Units of pinned machines.")
    guaranteed: Count = Field(description="Guaranteed units, without those of pinned machines.")
    unassigned: Count = Field(description="Units that are guaranteed to no one.")
    missing: Count = Field(description="Guaranteed units of absent machines.")


class QuotaRow(ReportObject):
    """The guarantee of one SKU. used, lent, and borrowed are unknown here: `vc usage` queries the cluster."""

    sku: str
    resource: str = Field(description="Resource of the devices. Empty: a unit is a core.")
    machines: Count = Field(description="Whole machines in the request. 0: the request names units.")
    guaranteed: Count = Field(description="Units.")
    memory_bytes: Count
    lend: Count = Field(description="Units that others may use while they are idle.")
    borrow: Count | None = Field(description="Units beyond the guarantee. null: all idle units.")
    used: Count | None = None
    lent: Count | None = None
    borrowed: Count | None = None


class PinnedMachine(ReportObject):
    """A machine of one virtual cluster."""

    machine: str
    sku: str


class PriorityRange(ReportObject):
    """Priorities of jobs: the default, and the highest permitted one."""

    usual: Priority
    highest: Priority


class VirtualClusterRow(ReportObject):
    """A virtual cluster."""

    name: str
    quota: tuple[QuotaRow, ...]
    pinned: tuple[PinnedMachine, ...]
    groups: tuple[str, ...] = Field(description="Groups with permission to submit. Empty: the site has no groups.")
    namespaces: tuple[str, ...]
    priorities: PriorityRange


class VirtualClustersReport(Report, title="pai-install vc list"):
    """The virtual clusters of the site."""

    scheduler: Backend | None = Field(description="null: the site has no virtual clusters.")
    topology: tuple[Level, ...] = Field(description="Levels above the machine, the widest first.")
    supply: tuple[SupplyRow, ...]
    virtual_clusters: tuple[VirtualClusterRow, ...]
    remarks: tuple[str, ...] = Field(description="Cells that HiveD's block guarantees.")
    not_kept: tuple[str, ...] = Field(description="Rules that the scheduler does not keep.")
    unmet: tuple[Unmet, ...] | None = Field(
        description="Guarantees that cannot be met now. null: the cluster was not queried."
    )


def virtual_clusters_report(
    scheduling: Scheduling | None,
    remarks: tuple[str, ...] = (),
    not_kept: tuple[str, ...] = (),
    unmet: tuple[Unmet, ...] | None = None,
) -> VirtualClustersReport:
    """Returns the report. scheduling: None without virtual clusters. The other values are those of its fields."""
    return VirtualClustersReport(
        scheduler=scheduling.backend if scheduling else None,
        topology=scheduling.levels if scheduling else (),
        supply=tuple(supply_row(scheduling, one) for one in scheduling.supply.values()) if scheduling else (),
        virtual_clusters=tuple(cluster_row(scheduling, one) for one in scheduling.clusters) if scheduling else (),
        remarks=remarks,
        not_kept=not_kept,
        unmet=unmet,
    )


def supply_row(scheduling: Scheduling, supply: Supply) -> SupplyRow:
    """Returns the capacity of an SKU's present machines, and its guaranteed share."""
    free = scheduling.free(supply.sku)
    guaranteed = sum(share.units for one in scheduling.clusters if (share := one.share(supply.sku)))
    return SupplyRow(
        sku=supply.sku,
        resource=supply.resource,
        machines=len(supply.machines),
        units=supply.total,
        pinned=supply.total - free,
        guaranteed=guaranteed,
        unassigned=max(0, free - guaranteed),
        missing=max(0, guaranteed - free),
    )


def cluster_row(scheduling: Scheduling, cluster: VirtualCluster) -> VirtualClusterRow:
    """A virtual cluster."""
    return VirtualClusterRow(
        name=cluster.name,
        quota=tuple(_quota(scheduling.supply[share.sku], share) for share in cluster.shares),
        pinned=tuple(PinnedMachine(machine=name, sku=scheduling.skus[name]) for name in cluster.pinned),
        groups=cluster.groups,
        namespaces=cluster.namespaces,
        priorities=PriorityRange(usual=cluster.usual, highest=cluster.highest),
    )


def _quota(supply: Supply, share: Share) -> QuotaRow:
    return QuotaRow(
        sku=share.sku,
        resource=supply.resource,
        machines=share.machines,
        guaranteed=share.units,
        memory_bytes=share.memory_bytes,
        lend=share.lend,
        borrow=share.borrow,
    )


def virtual_clusters_text(report: VirtualClustersReport) -> str:
    """Returns a table of the virtual clusters and one of the supply, then exceptions from them."""
    if report.scheduler is None:
        return NONE
    rows = [cells for row in report.virtual_clusters for cells in _cells(row)]
    text = f"kept by {report.scheduler}\n\n{table([_HEAD, *rows])}\n{supply_text(report.supply)}"
    kept = _listed(f"{report.scheduler} does not keep or count:", report.not_kept)
    return text + unmet_text(report.unmet or ()) + remarks_text(report.remarks) + kept


def _cells(row: VirtualClusterRow) -> Iterator[tuple[str, ...]]:
    """A line for each SKU that it has, the first with its name."""
    pinned = ", ".join(one.machine for one in row.pinned) or "none"
    groups = ", ".join(row.groups) or "everyone"
    priority = f"{row.priorities.usual} to {row.priorities.highest}"
    first, last = (row.name,), (pinned, groups, priority)
    for quota in row.quota:
        yield (*first, *quota_cells(quota), *last)
        first, last = ("",), ("", "", "")
    if not row.quota:
        yield (*first, "none", "", "", "", *last)


def quota_cells(quota: QuotaRow) -> tuple[str, str, str, str]:
    """Returns SKU, guarantee, lending limit, and borrowing limit as text."""
    amount = _amount(quota.guaranteed, quota.resource)
    if machines := quota.machines:
        amount = f"{machines} {'machine' if machines == 1 else 'machines'} ({amount})"
    lends = "all" if quota.lend == quota.guaranteed else str(quota.lend or "none")
    borrows = "all" if quota.borrow is None else str(quota.borrow or "none")
    return quota.sku, amount, lends, borrows


def _amount(units: int, resource: str) -> str:
    word = "device" if resource else "core"
    return f"{units} {word if units == 1 else word + 's'}"


def supply_text(rows: Sequence[SupplyRow]) -> str:
    """Returns a table of the machines' capacity."""
    return table([_SUPPLY_HEAD, *map(_supply_cells, rows)])


def _supply_cells(row: SupplyRow) -> tuple[str, ...]:
    rest = f"{row.missing} missing" if row.missing else str(row.unassigned)
    total = _amount(row.units, row.resource)
    return row.sku, str(row.machines), total, str(row.pinned), str(row.guaranteed), rest


def remarks_text(remarks: Sequence[str]) -> str:
    """Returns the cells of HiveD's block as text."""
    return _listed("cells of HiveD's block:", remarks)


def _listed(head: str, sentences: Sequence[str]) -> str:
    lines = ("", head, *(f"  {one}" for one in sentences)) if sentences else ()
    return "".join(f"{line}\n" for line in lines)
