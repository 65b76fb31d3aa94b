"""`pai-install support-bundle`: one file to find a fault with."""

from __future__ import annotations

import click

from pai_install.app.context import App
from pai_install.app.support import MB, WriteSupportBundle, write_support_bundle
from pai_install.cli.command import reading
from pai_install.cli.options import text_only
from pai_install.cli.output import echo
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode


@click.command
@reading(WriteSupportBundle, formats=text_only)
def command(*, app: App, terminal: Terminal, request: WriteSupportBundle) -> int:
    """Write logs, versions, findings, and reports to one file. Changes nothing.

    Known secrets, and strings that look like secrets, are masked. Review the bundle before you share it. Unreachable
    machines are listed. The exit code is still 0.
    """
    bundle = write_support_bundle(app, request)
    for name, why in bundle.missing.items():
        terminal.inform(f"without {name}: {why}")
    if bundle.dropped:
        terminal.inform(f"left out, because the bundle would be too large: {', '.join(bundle.dropped)}")
    echo(f"{bundle.path}: {bundle.files} files, {bundle.path.stat().st_size / MB:.1f} MB")
    return ExitCode.OK
