"""`pai-install explain`: evidence, rule, limits, and remedy of a check of any command."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.cli.options import format_option, site_option
from pai_install.cli.output import echo
from pai_install.errors import ExitCode


@click.command
@site_option
@click.argument("check", required=False)
@format_option
def command(*, site_dir: Path, check: str | None, output_format: str) -> int:
    """Describe CHECK: its inputs, rule, thresholds, and remedy. Without CHECK, list all checks.

    CHECK may also be an Xid (79 or xid-79), or an SXid of an NVSwitch (sxid-12020).
    """
    from pai_install.app.explain import explained  # noqa: PLC0415 - the rules load only when needed

    echo(explained(check, site_dir, as_json=output_format == "json"), nl=False)
    return ExitCode.OK
