"""`pai-install apply`: bring the machines to the desired state, and verify the cluster."""

from __future__ import annotations

import click

from pai_install.app.console import console_access
from pai_install.app.context import App, RunOptions
from pai_install.cli.command import acting
from pai_install.errors import ExitCode
from pai_install.operations.install import Install


@click.command
@acting(Install, joins=True)
def command(*, app: App, run: RunOptions, request: Install) -> int:
    """Apply the site to its machines, and verify the cluster.

    Machines in the desired state do not change. Preflight checks new machines first. A rejected, failed, or unreachable
    machine does not stop the others. Run the same command again to continue. The run ends with a health check. Reports
    are kept below SITE/.pai/runs.
    """
    code = app.exit_code(request, run)
    access = console_access(app) if code == ExitCode.OK and not run.check else None
    for line in access.lines if access else ():
        app.notify(line)
    return code
