"""The account of GPU hours as a result, as a table, and as CSV. Pure."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, fields
from datetime import UTC, datetime

from pydantic import AliasGenerator, Field

from pai_install.jobs.gpu_hours import Account, Amounts, Key
from pai_install.json_schema import Count, Report, ReportObject
from pai_install.report.table import table
from pai_install.system.plain import one_line

UNKNOWN = "(unknown)"
_HEAD = ("HELD", "BUSY", "BUSY %", "WAITED", "PREEMPTED", "BORROWED", "PODS")
_HOUR_S = 3600
_COUNTS = ("pods", "preemptions")
# a spreadsheet runs a cell that begins so
_FORMULA = ("=", "+", "-", "@", "\t")


def _key(field: str) -> str:
    return field if field in ("name", *_COUNTS) else f"{field}_gpu_s"


class UsageAmounts(ReportObject, alias_generator=AliasGenerator(serialization_alias=_key)):
    """Amounts of devices, in GPU seconds. null: unknown."""

    pods: Count
    held: Count
    measured: Count | None
    busy: Count | None = Field(description="Of the measured ones.")
    waited: Count | None = Field(description="From the queue to the node.")
    preempted: Count | None = Field(description="Held by pods that were preempted.")
    preemptions: Count | None
    borrowed: Count | None = Field(description="Beyond the quota of the virtual cluster.")


class NamedObject(ReportObject):
    """What a row belongs to."""

    name: str | None = Field(description="null: unknown.")


class UsageRow(UsageAmounts, NamedObject):
    """The amounts of a user, group, virtual cluster, job, SKU, or node."""


class UsageReport(Report, title="usage"):
    """The GPU hours of a period."""

    start: str = Field(serialization_alias="from")
    end: str = Field(serialization_alias="to")
    by: Key
    rows: tuple[UsageRow, ...]
    total: UsageAmounts
    estimated: Count = Field(description="Pods with an estimated end.")
    unseen: Count = Field(description="Pods that may have gone on after they were last seen.")


def usage_report(account: Account) -> UsageReport:
    """The account, in GPU seconds."""
    return UsageReport(
        start=_moment(account.period.start),
        end=_moment(account.period.end),
        by=account.by,
        rows=tuple(UsageRow(name=name or None, **asdict(amounts)) for name, amounts in account.rows),
        total=UsageAmounts.model_validate(account.total),
        estimated=account.estimated,
        unseen=account.unseen,
    )


def account_text(account: Account) -> str:
    """Returns a table in GPU hours, with "-" for unknown amounts."""
    rows = [(one_line(name) or UNKNOWN, *_cells(amounts)) for name, amounts in account.rows]
    if len(rows) != 1:
        rows.append(("total", *_cells(account.total)))
    head = f"GPU hours from {_moment(account.period.start)} to {_moment(account.period.end)}\n\n"
    return head + table([(account.by.upper(), *_HEAD), *rows])


def _cells(amounts: Amounts) -> tuple[str, ...]:
    share = f"{100 * (amounts.busy or 0) / amounts.measured:.0f}" if amounts.measured else "-"
    hours = (amounts.waited, amounts.preempted, amounts.borrowed)
    return (_hours(amounts.held), _hours(amounts.busy), share, *map(_hours, hours), str(amounts.pods))


def _hours(seconds: int | None) -> str:
    return "-" if seconds is None else f"{seconds / _HOUR_S:.2f}"


def account_csv(account: Account) -> str:
    """Returns CSV in GPU hours, with empty cells for unknown amounts, without a total."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    names = [it.name if it.name in _COUNTS else f"{it.name}_gpu_hours" for it in fields(Amounts)]
    rows.writerow(["from", "to", account.by.replace("-", "_"), *names])
    period = (_moment(account.period.start), _moment(account.period.end))
    for name, amounts in account.rows:
        cells = [_csv_cell(it.name, getattr(amounts, it.name)) for it in fields(amounts)]
        rows.writerow([*period, _harmless(name), *cells])
    return out.getvalue()


def _csv_cell(field: str, value: int | None) -> str:
    if value is None:
        return ""
    return str(value) if field in _COUNTS else f"{value / _HOUR_S:.6f}"


def _harmless(name: str) -> str:
    plain = one_line(name)
    return f"'{plain}" if plain.startswith(_FORMULA) else plain


def _moment(at: int) -> str:
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return str(at)
