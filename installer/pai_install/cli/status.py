"""`pai-install status`: machines, cluster, drift and the last run at a glance."""

from __future__ import annotations

from functools import partial

import click

from pai_install.app.context import App
from pai_install.app.runs import status_of
from pai_install.cli.command import reading
from pai_install.cli.terminal import Terminal
from pai_install.report.site_status import status_text
from pai_install.report.status import status_report


@click.command
@reading()
@click.option("--offline", is_flag=True, help="Show the last known state. Do not contact machines.")
def command(*, app: App, terminal: Terminal, offline: bool) -> int:
    """Show machines, cluster, differences from the site, and the last run.

    Changes nothing. Exit code 5 if a machine is unreachable, 6 if it cannot be observed, 7 if the cluster is unhealthy
    or not verified. During another run, only the last known state is shown. Differences from the site are shown only
    if the site's components are in the cache of this host.
    """
    status = status_of(app, offline=offline)
    terminal.show(partial(status_report, status), status_text(status))
    return status.exit_code
