"""`pai-install upgrade`: other versions of Kubernetes, runtimes, and add-ons, node after node."""

from __future__ import annotations

import click

from pai_install.app.context import App, RunOptions
from pai_install.cli.command import acting
from pai_install.operations.upgrade import Upgrade


@click.command
@acting(Upgrade)
def command(*, app: App, run: RunOptions, request: Upgrade) -> int:
    """Upgrade Kubernetes, container runtimes, and add-ons to the versions of this pai-install.

    Control planes are upgraded first, one by one, after a snapshot of etcd. Workers follow in batches. Each node is
    drained, upgraded, and verified before the next batch. The first failed batch ends the upgrade. Run the same command
    again to continue. `apply` never upgrades: it keeps the installed versions.
    """
    return app.exit_code(request, run)
