"""`vc plan`: what the site's virtual clusters would change in the cluster, and whose jobs that touches."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.tell import tell_result
from pai_install.cli._shared.vc_usage import read_usage
from pai_install.cli.options import format_option, site_option
from pai_install.cluster.client import ClusterClient
from pai_install.errors import ExitCode
from pai_install.kube.model import Ref
from pai_install.report.virtual_clusters_plan import ClustersChange, clusters_change, plan_data, plan_text
from pai_install.run.environment import Environment
from pai_install.run.state import state_of
from pai_install.schedulers.last_applied import KEPT, KEPT_IN, kept_of
from pai_install.scheduling.model import Scheduling
from pai_install.scheduling.read import scheduling_of
from pai_install.site.load import load_site
from pai_install.site.model import Site


@click.command
@site_option
@format_option
@pass_environment
def plan(*, site_dir: Path, output_format: str, environment: Environment) -> int:
    """Show which virtual clusters would appear, go, grow or shrink with the next apply, and whose jobs that touches.

    Compared are the site's files and what the cluster was given last. Nothing is changed. Only the Kubernetes API is
    asked; exit code 5 when no control plane answers, 6 when the API refuses.
    """
    site = load_site(site_dir).site
    with environment.cluster(site, state_of(site_dir), accept_new=False) as cluster:
        found = change_of(cluster, site, read_kept(cluster))
    tell_result(output_format, plan_data(found), plan_text(found))
    return ExitCode.OK


def read_kept(cluster: ClusterClient) -> Scheduling | None:
    """What the cluster was given last; None for nothing. Raises NoClusterError and ApiError."""
    (found,) = cluster.get([Ref("configmap", KEPT, KEPT_IN)])
    return kept_of(found)


def change_of(cluster: ClusterClient, site: Site, before: Scheduling | None) -> ClustersChange:
    """What would change, and whose jobs use what changes. Raises NoClusterError and ApiError."""
    usage = read_usage(cluster, site, before) if before is not None else None
    return clusters_change(before, scheduling_of(site), usage)
