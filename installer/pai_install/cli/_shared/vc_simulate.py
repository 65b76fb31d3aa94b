"""`vc simulate`: where a job would go, what it would take back, or which rule keeps it waiting."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TextIO

import click

from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.tell import tell_result
from pai_install.cli._shared.vc_known import known_cluster, scheduling_at
from pai_install.cli.options import format_option, site_option
from pai_install.cluster.client import ClusterClient, Select
from pai_install.errors import ExitCode, PaiError
from pai_install.report.virtual_clusters_simulation import simulation_data, simulation_text
from pai_install.run.environment import Environment
from pai_install.run.state import state_of
from pai_install.schedulers.simulate.manifest import NoJobError, gang_of
from pai_install.schedulers.simulate.model import ClusterNow, NewJob
from pai_install.schedulers.simulate.snapshot import snapshot_kinds, snapshot_of
from pai_install.schedulers.simulate.verdict import simulate as judge
from pai_install.scheduling.model import PRIORITIES, Scheduling
from pai_install.site.load import load_site


@click.command
@site_option
@click.argument("job", metavar="JOB.yaml", type=click.File(encoding="utf-8"))
@click.option("--vc", "name", default="", metavar="NAME", help="As if the job were of this virtual cluster.")
@click.option("--priority", type=click.Choice(list(PRIORITIES)), help="As if the job had this priority.")
@format_option
@pass_environment
def simulate(
    *, site_dir: Path, job: TextIO, name: str, priority: str | None, output_format: str, environment: Environment
) -> int:
    """Say where a job would go, what it would take back from others, or which rule keeps it waiting.

    JOB.yaml holds one JobSet, batch Job, Volcano Job, Pod, TFJob or PyTorchJob as it would be submitted; - reads
    standard input. Nothing is submitted. The verdict goes by the site's files and by what runs now, so exit code 0
    does not mean that the job starts. Only the Kubernetes API is asked; exit code 5 when no control plane answers, 6
    when the API refuses.
    """
    site = load_site(site_dir).site
    scheduling = scheduling_at(site)
    if name:
        known_cluster(scheduling, name)
    gang = _told(job, name, priority)
    with environment.cluster(site, state_of(site_dir), accept_new=False) as cluster:
        snapshot = read_snapshot(cluster, scheduling)
    told = judge(scheduling, snapshot, gang)
    tell_result(output_format, simulation_data(scheduling, *told), simulation_text(*told))
    return ExitCode.OK


def _told(job: TextIO, name: str, priority: str | None) -> NewJob:
    """The job with what the options say. Raises PaiError."""
    try:
        gang = gang_of(job.read())
    except (NoJobError, UnicodeDecodeError) as error:
        message = f"{job.name}: {error}"
        remedy = "give one JobSet, batch Job, Volcano Job or Pod, as kubectl would create it"
        raise PaiError(message, code="job-not-simulated", remedy=remedy, exit_code=ExitCode.USAGE) from error
    if name:
        gang = replace(gang, cluster=name)
    return replace(gang, priority=priority, number=None) if priority else gang


def read_snapshot(cluster: ClusterClient, scheduling: Scheduling) -> ClusterNow:
    """What the cluster says now. Raises NoClusterError and ApiError."""
    return snapshot_of(scheduling, cluster.list(*(Select((kind,)) for kind in snapshot_kinds(scheduling.backend))))
