"""The certificates of a cluster: as data, as text, and the schema of the data. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pai_install.checks.verdict import Verdict
from pai_install.json_schema import closed_object, published
from pai_install.plan.certificates import CertificateRow
from pai_install.report.storages import table

CERTIFICATES_SCHEMA_VERSION = 1
_HEAD = ("MACHINE", "CERTIFICATE", "OF", "ENDS", "DAYS LEFT", "")


def certificates_data(rows: Sequence[CertificateRow], unreachable: Sequence[str]) -> dict[str, Any]:
    """Returns the published form. unreachable: machines with unknown certificates."""
    return {
        "schema_version": CERTIFICATES_SCHEMA_VERSION,
        "certificates": [_entry(row) for row in rows],
        "unreachable": list(unreachable),
    }


def _entry(row: CertificateRow) -> dict[str, Any]:
    return {
        "subject": row.subject,
        "path": row.path,
        "purpose": row.purpose,
        "expires": row.expires,
        "date": row.date,
        "days": row.days,
        "verdict": row.verdict.value,
        "problem": row.problem,
        "renewable": row.renewable,
        "remedy": "" if row.verdict is Verdict.PASS else row.remedy,
    }


def certificates_text(rows: Sequence[CertificateRow], unreachable: Sequence[str]) -> str:
    """Returns a table, first expiry at the top, then remedies for certificates near their expiry."""
    if not rows and not unreachable:
        return "no control plane of a cluster was seen: there are no certificates yet\n"
    ordered = sorted(rows, key=lambda row: (row.expires or 0, row.subject, row.path))
    shown = table([_HEAD, *map(_cells, ordered)]) if rows else ""
    remedies = dict.fromkeys(
        f"{row.verdict.value} {row.subject}, {row.path}: {row.remedy}\n"
        for row in ordered
        if row.verdict is not Verdict.PASS
    )
    return "".join([shown, *remedies, *(f"{name} was not reached\n" for name in unreachable)])


def _cells(row: CertificateRow) -> tuple[str, ...]:
    left = "" if row.days is None else str(row.days)
    said = "" if row.verdict is Verdict.PASS else f"{row.verdict.value} {row.problem}".strip()
    return row.subject, row.path, row.purpose, row.date, left, said


def schema() -> dict[str, Any]:
    """The JSON Schema of `certificates_data`."""
    text: dict[str, Any] = {"type": "string"}
    number: dict[str, Any] = {"type": ["integer", "null"]}
    one = closed_object(
        subject={**text, "description": "a machine, or the controller host"},
        path=text,
        purpose={**text, "description": "whose it is, in a few words"},
        expires={**number, "description": "seconds since 1970; null where it cannot be read"},
        date={**text, "description": "the day on which it ends, in UTC"},
        days={**number, "description": "whole days left; negative once it has ended"},
        verdict={"enum": [verdict.value for verdict in Verdict]},
        problem={**text, "description": "why it cannot be read, or is not in use yet"},
        renewable={"type": "boolean", "description": "whether certs renew renews it"},
        remedy={**text, "description": "what to do; empty for PASS"},
    )
    return published(
        "pai-install certs show",
        CERTIFICATES_SCHEMA_VERSION,
        certificates={"type": "array", "items": one},
        unreachable={"type": "array", "items": text},
    )
