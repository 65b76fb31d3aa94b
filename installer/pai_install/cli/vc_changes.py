"""`pai-install vc apply` and `vc migrate`: changes of virtual clusters."""

from __future__ import annotations

import click

from pai_install.app.context import App, RunOptions
from pai_install.app.virtual_cluster_changes import (
    ApplyVirtualClusters,
    MigrateVirtualClusters,
    apply_virtual_clusters,
    migrate_virtual_clusters,
)
from pai_install.cli.command import acting, reading
from pai_install.cli.options import text_only
from pai_install.cli.output import echo


@click.command
@acting(ApplyVirtualClusters, several=True)
def apply(*, app: App, run: RunOptions, request: ApplyVirtualClusters) -> int:
    """Apply the site's virtual clusters, and nothing else.

    The changes and the affected jobs are shown first, as with `vc plan`. A virtual cluster that has jobs is removed
    only with --force. If the scheduler rejects the virtual clusters, the last good ones are restored, and the command
    fails. HiveD's bridge restores them itself.

    Run `apply` first if their nodes, groups, or scheduler changed. Run the same command again after an interruption.
    """
    return apply_virtual_clusters(app, request, run)


@click.command
@reading(MigrateVirtualClusters, formats=text_only)
def migrate(*, app: App, request: MigrateVirtualClusters) -> int:
    """Rewrite virtual clusters: HiveD's block as the sections scheduler and virtual-clusters, or back.

    Prints the YAML, or edits the file and keeps all else, comments included. HiveD's block stays beside the sections,
    without effect, until you remove it. Values without a counterpart are listed. Reads the site only.
    """
    migration = migrate_virtual_clusters(app, request)
    echo(migration.text, nl=False)
    return migration.exit_code
