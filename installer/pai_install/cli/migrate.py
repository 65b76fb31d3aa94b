"""`pai-install migrate`: an old OpenPAI site -> a current one."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from pai_install.cli.options import format_option, site_option
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode
from pai_install.migrate import migrate
from pai_install.migrate.report import migration_report, migration_text


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
    Terminal(output_format=output_format).show(partial(migration_report, done), migration_text(done, whole=whole))
    return ExitCode.OK if done.reading.site is not None else ExitCode.SITE_INVALID
