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
from pai_install.site.validation import meaning_lines, validation_report, verdict
from pai_install.site_edit.annotate import annotate


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
        echo(json.dumps(validation_report(reading).as_json(), indent=2))
    else:
        for line in _text(reading, annotated=annotated):
            echo(line)
    return ExitCode.OK if reading.site is not None else ExitCode.SITE_INVALID


def _text(reading: SiteReading, *, annotated: bool) -> Iterator[str]:
    if annotated:
        for document in reading.sources.values():
            yield from annotate(document)
            yield ""
    else:
        yield from text_lines(reading.problems)
    if reading.site is not None:
        yield from [""] if reading.problems and not annotated else []
        yield from (printable(line) for line in meaning_lines(reading.site))
        yield ""
    yield verdict(reading)
