"""`pai-install migrate`: an old OpenPAI site -> a current one."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pai_install.cli.options import format_option, site_option
from pai_install.cli.output import echo
from pai_install.documents.problem import printable, text_lines
from pai_install.errors import ExitCode
from pai_install.migrate import Migration, migrate
from pai_install.system.words import plural

SCHEMA_VERSION = 1


@click.command
@click.argument("source", type=click.Path(exists=True, file_okay=False, path_type=Path))
@site_option
@format_option
@click.option("--account", "whole", is_flag=True, help="Show the account of every key, entry, and file.")
def command(*, source: Path, site_dir: Path, output_format: str, whole: bool) -> int:
    """Convert the old site in SOURCE to the current format in --site DIR.

    Supports OpenPAI v0.x (layout.yaml, cluster-configuration.yaml, quick-start.yaml) and v1.0-v1.4 (master.csv,
    worker.csv, config), also next to newer files. Existing files are never overwritten. migrated.txt in DIR accounts
    for every key, entry, and file. Exit code 3 if you must complete the new site by hand.
    """
    done = migrate(source, site_dir)
    if output_format == "json":
        echo(json.dumps(_report(done), indent=2))
    else:
        _print(done, whole=whole)
    return ExitCode.OK if done.reading.site is not None else ExitCode.SITE_INVALID


def _report(done: Migration) -> dict[str, object]:
    return {
        "schema_version": SCHEMA_VERSION,
        "ok": done.reading.site is not None,
        "origin": done.origin,
        "files": [str(path) for path in done.files],
        "counts": {outcome.value: count for outcome, count in done.counts.items()},
        "account": [entry.as_json() for entry in done.account],
        "notes": [{"what": note.what, "why": note.why} for note in done.notes],
        "problems": [problem.as_json() for problem in done.reading.problems],
    }


def _print(done: Migration, *, whole: bool) -> None:
    echo(f"migrated from {done.origin}: {', '.join(str(path) for path in done.files)}")
    counts = ", ".join(f"{count} {outcome.value}" for outcome, count in done.counts.items())
    echo(f"{plural(sum(done.counts.values()), 'value')} of the old site: {counts}")
    lines = [f"{note.what}: {note.why}" for note in done.notes]
    if whole:
        lines = [str(entry) for entry in done.account]
    elif lines:
        echo("dropped or changed:")
    for line in lines:
        echo(printable(f"  {line}"))
    for line in text_lines(done.reading.problems):
        echo(line)
    state = "valid" if done.reading.site is not None else "not valid yet: correct the lines above"
    echo(f"the new site is {state}")
