"""`pai-install status`: machines, cluster, drift and the last run at a glance."""

from __future__ import annotations

import click

from pai_install.app.context import App
from pai_install.app.runs import status_of
from pai_install.cli.command import reading
from pai_install.cli.terminal import Terminal
from pai_install.report.standing import status_data, status_text


@click.command
@reading()
@click.option("--offline", is_flag=True, help="Only what the dev box knows; ask no machine.")
def command(*, app: App, terminal: Terminal, offline: bool) -> int:
    """Show machines, cluster, what differs from the site, and the last run; changes nothing.

    Exit code 6 when a machine cannot be observed, 5 when one does not answer, 7 when the cluster is not well or
    not proven. While another run works on the site, only what the dev box knows is shown. Nothing is fetched: without
    the site's components on the dev box it does not look for what differs from the site.
    """
    status = status_of(app, offline=offline)
    terminal.show(status_data(status), status_text(status))
    return status.exit_code
