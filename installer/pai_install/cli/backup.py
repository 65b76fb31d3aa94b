"""`pai-install backup`: a file to restore the cluster from."""

from __future__ import annotations

import click

from pai_install.app.context import App
from pai_install.cli.command import checking
from pai_install.operations.backup import Backup


@click.command
@checking(Backup)
def command(*, app: App, request: Backup) -> int:
    """Back up the cluster to FILE. The file contains every key of the cluster, and only you can read it.

    It contains a verified snapshot of etcd, the authorities and keys of the control planes, the site's files, and the
    site's state on this host. Without FILE, the backup goes to SITE/.pai/backups: copy it to another machine. `restore
    FILE` restores it.
    """
    return app.exit_code(request)
