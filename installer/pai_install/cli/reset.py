"""`pai-install reset`: take the whole cluster off its machines."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.cli._shared.act import How, act, check_option, plan_option
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli.options import format_option, site_option
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.reset import Reset, cluster_id
from pai_install.run.environment import Environment
from pai_install.run.request import Request
from pai_install.site.load import load_site


@click.command
@site_option
@click.option("--with-data", is_flag=True, help="Also remove images, Docker's data and storages that machines serve.")
@click.option("--yes", "agreed", metavar="CLUSTER-ID", help="Do not ask; must be the id of this very cluster.")
@check_option
@plan_option
@format_option
@pass_environment
def command(
    *,
    site_dir: Path,
    with_data: bool,
    agreed: str | None,
    check: bool,
    plan_file: Path | None,
    output_format: str,
    environment: Environment,
) -> int:
    """Take the cluster and everything of pai-install off all machines: they are as before the installation.

    The objects of the cluster, its jobs and its etcd are lost. Images, Docker's data and what machines serve as
    storages stay unless --with-data is given. The cluster's id has to be typed, or given with --yes: cluster-id in
    services-configuration.yaml, else the name of the site's folder. A machine that does not answer is left and named;
    the same command cleans it when it is back.
    """
    known = cluster_id(load_site(site_dir).site)
    if agreed is not None and agreed != known:
        raise PaiError(
            f"--yes {agreed} is not the id of this cluster, which is {known}",
            remedy=f"is {site_dir} the site that you mean? then --yes {known}",
            exit_code=ExitCode.USAGE,
        )
    how = How(agreed is not None, check, plan_file, output_format == "json")
    return act(Request(site_dir, Reset(with_data=with_data, cluster=known)), environment, how)
