"""`pai-install operations`: the verbs that act, with their arguments."""

from __future__ import annotations

import click

from pai_install.cli.options import format_option
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode
from pai_install.operations.listing import operations_report, operations_text


@click.command
@format_option
def command(*, output_format: str) -> int:
    """List the operations and their arguments. With --format json, print JSON Schemas.

    Operations that change the cluster show a plan first, accept --yes, --check, and --plan, and write a journal and a
    report.
    """
    Terminal(output_format=output_format).show(operations_report, f"{operations_text()}\n")
    return ExitCode.OK
