"""`pai-install vc`: virtual clusters, who is guaranteed what, and the way from HiveD's block to them and back."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.site_edit import Editing
from pai_install.cli._shared.tell import tell_result
from pai_install.cli._shared.vc_apply import apply
from pai_install.cli._shared.vc_known import known_cluster, scheduling_at
from pai_install.cli._shared.vc_migrate import migrate_clusters
from pai_install.cli._shared.vc_plan import plan
from pai_install.cli._shared.vc_simulate import simulate
from pai_install.cli._shared.vc_usage import unmet_now, usage
from pai_install.cli.options import format_option, group_site_option, site_option
from pai_install.errors import ExitCode
from pai_install.report.virtual_cluster import virtual_cluster_data, virtual_cluster_text
from pai_install.report.virtual_clusters import virtual_clusters_data, virtual_clusters_text
from pai_install.run.environment import Environment
from pai_install.schedulers.compile import remarks as not_kept
from pai_install.scheduling.model import BACKENDS, Backend
from pai_install.scheduling.read import remarks_of, scheduling_of
from pai_install.site.load import load_site


@click.group
@group_site_option
def command() -> None:
    """Virtual clusters: who is guaranteed which machines, what is lent and borrowed, and who may submit."""


@command.command(name="list")
@site_option
@format_option
@pass_environment
def list_command(*, site_dir: Path, output_format: str, environment: Environment) -> int:
    """List the site's virtual clusters, what its machines have, and which guarantees these cannot meet now.

    A guarantee of which machines are absent is shown as missing. The cluster, where the site has one that answers, is
    asked for its nodes: those that are cordoned, not Ready, not there, or offer less than layout.yaml says.
    """
    site = load_site(site_dir).site
    scheduling = scheduling_of(site)
    unmet = unmet_now(environment, site, site_dir, scheduling) if scheduling is not None else None
    said = remarks_of(site), not_kept(scheduling) if scheduling is not None else (), unmet
    tell_result(output_format, virtual_clusters_data(scheduling, *said), virtual_clusters_text(scheduling, *said))
    return ExitCode.OK


@command.command()
@site_option
@click.argument("name", metavar="NAME")
@format_option
def show(*, site_dir: Path, name: str, output_format: str) -> int:
    """Show a virtual cluster: its guarantees, pinned machines, groups and priorities; asks no machine."""
    scheduling = scheduling_at(load_site(site_dir).site)
    known_cluster(scheduling, name)
    tell_result(output_format, virtual_cluster_data(scheduling, name), virtual_cluster_text(scheduling, name))
    return ExitCode.OK


@command.command()
@site_option
@click.option(
    "--to",
    "target",
    type=click.Choice(BACKENDS),
    default="kueue",
    show_default=True,
    help="What is to keep them; hived: as HiveD's block, without the sections.",
)
@click.option("--write", is_flag=True, help="Edit services-configuration.yaml; without, the text is printed.")
@pass_environment
def migrate(*, site_dir: Path, target: Backend, write: bool, environment: Environment) -> int:
    """Write virtual clusters another way: HiveD's block as the sections scheduler and virtual-clusters, and back.

    Prints the YAML, or edits the file, where all else stays as it is, comments too. HiveD's block stays beside the
    sections, without effect, until you remove it. What cannot be said the other way is named. No machine is asked.
    """
    return migrate_clusters(Editing(site_dir, environment), target, write=write)


command.add_command(usage)
command.add_command(plan)
command.add_command(simulate)
command.add_command(apply)
