"""`pai-install restore`: the cluster as it was at a backup."""

from __future__ import annotations

import click

from pai_install.app.context import App, RunOptions
from pai_install.app.runs import RestoreCluster, restore_cluster
from pai_install.cli.command import acting


@click.command
@acting(RestoreCluster, joins=True)
def command(*, app: App, run: RunOptions, request: RestoreCluster) -> int:
    """Restore the cluster from FILE, a file of `backup`.

    All objects of the API are replaced. Missing files of the site are written first. Existing files stay. One
    control-plane node then starts from the snapshot, the others join it, and apply reconciles the machines. To confirm,
    type the ID of the cluster, or pass it with --yes.
    """
    return restore_cluster(app, request, run)
