"""The validation of a site as a result and as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from pai_install.documents.problem import Problem
from pai_install.json_schema import Report
from pai_install.site.load import SiteReading
from pai_install.site.model import Site
from pai_install.site.rules.pending import pending
from pai_install.site.summary import headline, machine_table, meanings, site_json
from pai_install.system.words import plural


class ValidationReport(Report, title="pai-install validate --format json"):
    """Problems of a site's files, and the meaning of the site."""

    ok: bool
    problems: tuple[Problem, ...]
    site: Mapping[str, Any] | None = Field(description="null with errors.")
    pending: tuple[str, ...] = Field(description="What the site asks for and this version does not do yet.")


def validation_report(reading: SiteReading) -> ValidationReport:
    """Returns the validation as a result."""
    site = reading.site
    return ValidationReport(
        ok=site is not None,
        problems=tuple(reading.problems),
        site=site_json(site) if site is not None else None,
        pending=tuple(pending(site)) if site is not None else (),
    )


def meaning_lines(site: Site) -> Iterator[str]:
    """Yields the meaning of a site: machines, decisions, and what is not done yet."""
    yield f"site {site.directory}: {headline(site)}"
    yield ""
    rows = list(machine_table(site))
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield ""
    for meaning in meanings(site):
        yield f"  {meaning.topic:<20}{meaning.value}{' (default)' if meaning.default else ''}"
    for line in pending(site):
        yield f"  not yet: {line}"


def verdict(reading: SiteReading) -> str:
    """Returns the last line: valid or not, and the number of problems."""
    errors = sum(problem.is_error for problem in reading.problems)
    warnings = len(reading.problems) - errors
    counts = f"{plural(errors, 'error')}, {plural(warnings, 'warning')}"
    return f"the site is {'valid' if reading.site is not None else 'invalid'}: {counts}"
