"""`vc usage`: what jobs use of the virtual clusters now."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.tell import say, tell_result
from pai_install.cli._shared.vc_known import known_cluster, scheduling_at
from pai_install.cli.options import format_option, site_option
from pai_install.cluster.client import ApiError, ClusterClient, NoClusterError, Select
from pai_install.errors import ExitCode
from pai_install.report.virtual_clusters_usage import usage_data, usage_text
from pai_install.run.environment import Environment
from pai_install.run.state import state_of
from pai_install.schedulers.usage import NODES, Usage, kinds_of, usage_of
from pai_install.scheduling.model import Scheduling
from pai_install.scheduling.usage.health import Unmet, unmet
from pai_install.site.load import load_site
from pai_install.site.model import Site
from pai_install.site.workers import workers_of


@click.command
@site_option
@click.argument("name", metavar="[NAME]", default="")
@format_option
@pass_environment
def usage(*, site_dir: Path, name: str, output_format: str, environment: Environment) -> int:
    """Show what jobs use of each virtual cluster, of one or of all: used, lent, borrowed, and what waits.

    Also which guarantees cannot be met now, because of machines that are absent, cordoned or not Ready. Only the
    Kubernetes API is asked; exit code 5 when no control plane answers, 6 when the API refuses.
    """
    site = load_site(site_dir).site
    scheduling = scheduling_at(site)
    if name:
        known_cluster(scheduling, name)
    with environment.cluster(site, state_of(site_dir), accept_new=False) as cluster:
        found = read_usage(cluster, site, scheduling)
    tell_result(output_format, usage_data(scheduling, found, name), usage_text(scheduling, found, name))
    return ExitCode.OK


def unmet_now(environment: Environment, site: Site, site_dir: Path, scheduling: Scheduling) -> tuple[Unmet, ...] | None:
    """Which guarantees cannot be met; None where no machine was met yet; also, said, where none can be asked."""
    state = state_of(site_dir)
    if not state.known_hosts.exists():
        return None
    try:
        with environment.cluster(site, state, accept_new=False) as cluster:
            (nodes,) = cluster.list(Select((NODES,)))
    except (NoClusterError, ApiError) as error:
        say(f"what machines offer now is not known: {error.message}")
        return None
    return unmet(scheduling, nodes, absent_of(site))


def absent_of(site: Site) -> dict[str, tuple[str, ...]]:
    """SKU -> machines that the site says are not there."""
    return {sku: one.absent for sku, one in workers_of(site).items()}


def read_usage(cluster: ClusterClient, site: Site, scheduling: Scheduling) -> Usage:
    """What the cluster says now. Raises NoClusterError and ApiError."""
    answers = cluster.list(*(Select((kind,)) for kind in kinds_of(scheduling.backend)))
    return usage_of(scheduling, answers, absent_of(site))
