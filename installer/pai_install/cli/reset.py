"""`pai-install reset`: remove the cluster from its machines."""

from __future__ import annotations

import click

from pai_install.app.context import App, RunOptions
from pai_install.cli.command import acting
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.reset import Reset, cluster_id


@click.command
@acting(
    Reset,
    yes=click.option("--yes", metavar="CLUSTER-ID", help="Do not ask. Must be the id of this cluster."),
)
def command(*, app: App, run: RunOptions, request: Reset, agreed: str | None = None) -> int:
    """Remove the cluster and everything that pai-install installed from all machines.

    The cluster's objects, jobs, and etcd are lost. Images, Docker's data, and served storages stay unless you give
    --with-data. To confirm, type the ID of the cluster, or pass it with --yes: cluster-id in
    services-configuration.yaml, or the name of the site's folder. Unreachable machines are reported. Run the same
    command again once they are reachable.
    """
    known = cluster_id(app.site)
    if agreed is not None and agreed != known:
        raise PaiError(
            f"cannot remove the cluster: its ID is {known}, not {agreed}",
            code="cluster-id-differs",
            remedy=f"check that {app.site_dir} is the correct site, then add --yes {known}",
            exit_code=ExitCode.USAGE,
        )
    return app.exit_code(request.model_copy(update={"cluster": known}), run)
