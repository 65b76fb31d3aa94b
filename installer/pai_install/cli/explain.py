"""`pai-install explain`: evidence, rule, limits, and remedy of a check of any command."""

from __future__ import annotations

import json
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
    return show_explanation(check, site_dir, as_json=output_format == "json")


def show_explanation(name: str | None, site_dir: Path, *, as_json: bool, health_only: bool = False) -> int:
    """Prints the explanation of a check, or the list of checks. health_only: checks of `health` alone."""
    from pai_install.app import explain  # noqa: PLC0415 - the rules load only when needed

    if name is None and not as_json:
        echo(explain.listing(health_only=health_only), nl=False)
        return ExitCode.OK
    report = explain.explain(name, site_dir, health_only=health_only)
    if as_json:
        echo(json.dumps(report.as_json(), indent=2))
    else:
        echo(explain.explanation_text(report, health_only=health_only), nl=False)
    return ExitCode.OK
