"""`pai-install validate`: every problem of the site's files, and the meaning of the site."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from pai_install.cli.options import format_option, site_option
from pai_install.cli.output import echo
from pai_install.documents.problem import printable, text_lines
from pai_install.errors import ExitCode
from pai_install.site.load import SiteReading, read_site
from pai_install.site.model import Site
from pai_install.site.rules.pending import pending
from pai_install.site.summary import headline, machine_table, meanings, site_json
from pai_install.site_edit.annotate import annotate
from pai_install.system.words import plural

SCHEMA_VERSION = 1


@click.command
@site_option
@format_option
@click.option("--annotate", "annotated", is_flag=True, help="Print the files with marks at the problems.")
def command(*, site_dir: Path, output_format: str, annotated: bool) -> int:
    """Validate the site files and summarize the cluster. Exit code 3 if the site has errors."""
    if annotated and output_format == "json":
        raise click.UsageError("--annotate prints text. In the output of --format json, each problem has its position")
    reading = read_site(site_dir)
    if output_format == "json":
        echo(json.dumps(_report(reading), indent=2))
    else:
        for line in _text(reading, annotated=annotated):
            echo(line)
    return ExitCode.OK if reading.site is not None else ExitCode.SITE_INVALID


def _report(reading: SiteReading) -> dict[str, object]:
    return {
        "schema_version": SCHEMA_VERSION,
        "ok": reading.site is not None,
        "problems": [problem.as_json() for problem in reading.problems],
        "site": site_json(reading.site) if reading.site is not None else None,
        "pending": list(pending(reading.site)) if reading.site is not None else [],
    }


def _text(reading: SiteReading, *, annotated: bool) -> Iterator[str]:
    if annotated:
        for document in reading.sources.values():
            yield from annotate(document)
            yield ""
    else:
        yield from text_lines(reading.problems)
    if reading.site is not None:
        yield from [""] if reading.problems and not annotated else []
        yield from (printable(line) for line in _meaning(reading.site))
        yield ""
    yield _verdict(reading)


def _verdict(reading: SiteReading) -> str:
    errors = sum(problem.is_error for problem in reading.problems)
    warnings = len(reading.problems) - errors
    counts = f"{plural(errors, 'error')}, {plural(warnings, 'warning')}"
    return f"the site is {'valid' if reading.site is not None else 'invalid'}: {counts}"


def _meaning(site: Site) -> Iterator[str]:
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
