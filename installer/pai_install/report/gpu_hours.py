"""The account of GPU hours as data, as a table, as CSV, and as the schema of the data. Pure."""

from __future__ import annotations

import csv
import io
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from pai_install.jobs.gpu_hours import KEYS, Account, Amounts
from pai_install.json_schema import closed_object, published
from pai_install.report.storages import table
from pai_install.system.plain import one_line

USAGE_SCHEMA_VERSION = 1
UNKNOWN = "(unknown)"
_HEAD = ("HELD", "BUSY", "BUSY %", "WAITED", "PREEMPTED", "BORROWED", "PODS")
_HOUR_S = 3600
_COUNTS = ("pods", "preemptions")
# a spreadsheet runs a cell that begins so
_FORMULA = ("=", "+", "-", "@", "\t")


def account_data(account: Account) -> dict[str, Any]:
    """Returns the published form, in GPU seconds."""
    return {
        "schema_version": USAGE_SCHEMA_VERSION,
        "from": _moment(account.period.start),
        "to": _moment(account.period.end),
        "by": account.by,
        "rows": [{"name": name or None, **_amounts(amounts)} for name, amounts in account.rows],
        "total": _amounts(account.total),
        "estimated": account.estimated,
        "unseen": account.unseen,
    }


def _amounts(amounts: Amounts) -> dict[str, Any]:
    return {_name(it.name): getattr(amounts, it.name) for it in fields(amounts)}


def _name(field: str) -> str:
    return field if field in _COUNTS else f"{field}_gpu_s"


def schema() -> dict[str, Any]:
    """The JSON Schema of `usage --format json`."""
    count = {"type": "integer", "minimum": 0}
    maybe = {"type": ["integer", "null"], "minimum": 0}
    amounts = {_name(it.name): count if it.name in ("pods", "held") else maybe for it in fields(Amounts)}
    text = {"type": "string"}
    row = closed_object(name={"type": ["string", "null"]}, **amounts)
    return published(
        "usage",
        USAGE_SCHEMA_VERSION,
        **{"from": text, "to": text},
        by={"enum": list(KEYS)},
        rows={"type": "array", "items": row},
        total=closed_object(**amounts),
        estimated=count,
        unseen=count,
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
