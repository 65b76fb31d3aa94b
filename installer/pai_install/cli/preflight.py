"""`pai-install preflight`: find reasons why an installation would fail."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from pai_install.app.context import App
from pai_install.app.preflight import RunPreflight, run_preflight
from pai_install.cli.command import reading
from pai_install.cli.options import accept_new_option, formats_option
from pai_install.cli.output import echo, write_report
from pai_install.errors import ExitCode
from pai_install.preflight.forms import FORMATS, check_list, in_form
from pai_install.system.words import minute_text


@click.command
@reading(RunPreflight, accept_new_option, formats=formats_option(*FORMATS))
@click.option("--all", "everything", is_flag=True, help="Also show passed and skipped checks.")
@click.option("--list-checks", is_flag=True, help="Only list the checks and their requirements.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the report to this file.")
def command(*, app: App, request: RunPreflight, everything: bool, list_checks: bool, out: Path | None) -> int:
    """Run preflight checks on the machines. Changes nothing.

    Exit code 0 when no check fails, 4 otherwise. The report is kept below SITE/.pai/runs.
    """
    form = click.get_current_context().params["output_format"]
    if list_checks:
        echo(check_list(as_json=form == "json"), nl=False)
        return ExitCode.OK
    report = run_preflight(app, request)
    write_report(in_form(report, form, when=minute_text(datetime.now(UTC)), everything=everything), out)
    return report.exit_code
