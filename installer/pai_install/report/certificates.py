"""The certificates of a cluster, as a result and as text. Pure."""

from __future__ import annotations

from pydantic import Field

from pai_install.checks.verdict import Verdict
from pai_install.json_schema import Report, ReportObject
from pai_install.report.table import table

_HEAD = ("MACHINE", "CERTIFICATE", "OF", "ENDS", "DAYS LEFT", "")


class CertificateEntry(ReportObject):
    """A certificate."""

    subject: str = Field(description="A machine, or the controller host.")
    path: str
    purpose: str = Field(description="Its use, in a few words.")
    expires: int | None = Field(description="Seconds since 1970. null: unreadable.")
    date: str = Field(description="Day of the expiry in UTC.")
    days: int | None = Field(description="Whole days left, negative after the expiry.")
    verdict: Verdict
    problem: str = Field(description="Why it is unreadable, or not in use yet.")
    renewable: bool = Field(description="Whether `certs renew` renews it.")
    remedy: str = Field(validation_alias="advice", description="Remedy. Empty for PASS.")


class CertificatesReport(Report, title="pai-install certs show"):
    """The certificates of the machines and of the controller host."""

    certificates: tuple[CertificateEntry, ...]
    unreachable: tuple[str, ...] = Field(description="Machines that did not answer.")
    exit_code: int = Field(exclude=True)


def certificates_text(report: CertificatesReport) -> str:
    """Returns a table, first expiry at the top, then remedies for certificates near their expiry."""
    rows, unreachable = report.certificates, report.unreachable
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


def _cells(row: CertificateEntry) -> tuple[str, ...]:
    left = "" if row.days is None else str(row.days)
    message = "" if row.verdict is Verdict.PASS else f"{row.verdict.value} {row.problem}".strip()
    return row.subject, row.path, row.purpose, row.date, left, message
