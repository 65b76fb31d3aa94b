"""`pai-install scheduler switch`: another scheduler of jobs, and nothing of the one before."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.app.virtual_clusters import last_applied
from pai_install.cli._shared.act import How, SiteRequest, act, acting_options, require_answer
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.tell import say
from pai_install.cli.options import site_option
from pai_install.cluster.client import ClusterClient
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.scheduler_switch import SchedulerSwitch
from pai_install.run.environment import Environment
from pai_install.run.scheduler_switch import jobs_in, scheduler_text, still_busy
from pai_install.run.services_file import services_file
from pai_install.run.state import state_of
from pai_install.schedulers.compile import remarks
from pai_install.scheduling.amounts import devices_of
from pai_install.scheduling.model import BACKENDS, Backend
from pai_install.scheduling.read import scheduling_of
from pai_install.site.load import SERVICES, load_site
from pai_install.site.model import Site
from pai_install.site.schedulers import scheduler_of
from pai_install.site_edit.shown import difference


@click.command()
@site_option
@click.option("--to", type=click.Choice(BACKENDS), required=True, help="The scheduler that is to come.")
@click.option("--force", is_flag=True, help="End the jobs that run or wait; what they did not save is lost.")
@acting_options
@pass_environment
def switch(*, site_dir: Path, to: Backend, force: bool, how: How, environment: Environment) -> int:
    """Replace the scheduler of jobs: edits services-configuration.yaml, removes the old one whole, applies the site.

    Refuses while jobs of the old one run or wait, and names them. What is left of jobs that ended goes with their
    kinds. The old one is gone before the new one comes: no machine ever has two. An interrupted switch is completed
    by the same command, or by apply. At the end the self-test shows that the new one keeps what it promises.
    """
    require_answer(how)
    loaded = load_site(site_dir)
    _require_sections(loaded.site, to, site_dir)
    path = services_file(site_dir)
    text = path.read_bytes().decode() if path.exists() else ""
    after = scheduler_text(site_dir, text, to)
    site = load_site(site_dir, services=after).site
    with environment.cluster(site, state_of(site_dir), accept_new=False) as cluster:
        before = scheduler_before(cluster, loaded.site)
        if before != to:
            _tell_jobs(cluster, before, site, force=force, check=how.check)
    scheduling = scheduling_of(site)
    for line in remarks(scheduling) if scheduling is not None and before != to else ():
        say(f"{to}: {line}")
    if after != text:
        services = (loaded.site.services, site.services)
        click.echo(difference(str(site_dir / SERVICES), text, after, services), nl=False, err=how.as_json)
    operation = SchedulerSwitch(to=to, before=before, edits=after != text, force=force)
    return act(SiteRequest(site_dir, operation, services=after), environment, how)


def _require_sections(site: Site, to: Backend, site_dir: Path) -> None:
    """Raises PaiError for a site whose virtual clusters stand in HiveD's own block: what it says must not be lost."""
    if site.services.scheduler is None and scheduler_of(site) == "hived":
        first = f"pai-install vc migrate --site {site_dir} --to {to if to != 'hived' else 'kueue'} --write"
        raise PaiError(
            "the virtual clusters of this site stand in HiveD's own block, which no other scheduler reads",
            code="virtual-clusters-in-hived-block",
            remedy=f"{first} writes them as sections; then the same command" if to != "hived" else "nothing to do",
            exit_code=ExitCode.USAGE,
        )


def scheduler_before(cluster: ClusterClient, site: Site) -> Backend:
    """What the cluster was given last; where it keeps no word of that, what the site's file says. None is default."""
    kept = last_applied(cluster)
    return kept.backend if kept is not None else scheduler_of(site) or "default"


def _tell_jobs(cluster: ClusterClient, before: Backend, site: Site, *, force: bool, check: bool) -> None:
    """Names jobs that have not ended. Raises PaiError for them unless they may be ended, or nothing is done anyway."""
    scheduling = scheduling_of(site)
    jobs = jobs_in(cluster, before, devices_of(scheduling) if scheduling is not None else ())
    busy = [job for job in jobs if not job.ended]
    if busy and not (force or check):
        raise still_busy(busy, before)
    for job in jobs:
        say(f"{job}: {_fate(ended=job.ended, force=force)}")


def _fate(*, ended: bool, force: bool) -> str:
    if ended:
        return "it goes with what it is kept as"
    return "it is ended" if force else "the switch would be refused without --force"
