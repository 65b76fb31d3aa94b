"""`vc simulate`: one job beside the quotas, before it is submitted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TextIO

import click

from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.tell import tell_result
from pai_install.cli._shared.vc_known import known_cluster, scheduling_at
from pai_install.cli._shared.vc_usage import read_usage
from pai_install.cli.options import format_option, site_option
from pai_install.errors import ExitCode, PaiError
from pai_install.report.virtual_clusters_simulation import simulation_data, simulation_text
from pai_install.run.environment import Environment
from pai_install.run.state import state_of
from pai_install.schedulers.registry import backend_of
from pai_install.schedulers.simulation import simulate as judge
from pai_install.scheduling.job_request import JobRequest, JobRequestError, read_job_request
from pai_install.scheduling.model import PRIORITIES
from pai_install.site.load import load_site


@click.command
@site_option
@click.argument("job", metavar="JOB.yaml", type=click.File(encoding="utf-8"))
@click.option("--vc", "name", default="", metavar="NAME", help="Virtual cluster to simulate the job in.")
@click.option("--priority", type=click.Choice(list(PRIORITIES)), help="Priority to simulate the job with.")
@format_option
@pass_environment
def simulate(
    *, site_dir: Path, job: TextIO, name: str, priority: str | None, output_format: str, environment: Environment
) -> int:
    """Check a job against the quotas before you submit it.

    The answer is one of: the job fits the guarantee, would borrow, needs preemption, must wait for quota, can never
    run, or is refused. It counts quota and not places on machines, so exit code 0 does not mean that the job starts.
    JOB.yaml holds one JobSet, batch Job, Volcano Job, Pod, TFJob or PyTorchJob; - reads standard input. Only the
    Kubernetes API is queried. Exit code 5 if no control plane answers, 6 if the API refuses.
    """
    site = load_site(site_dir).site
    scheduling = scheduling_at(site)
    if name:
        known_cluster(scheduling, name)
    request = _request(job, name, priority)
    with environment.cluster(site, state_of(site_dir), accept_new=False) as cluster:
        usage = read_usage(cluster, site, scheduling)
    found = judge(site, scheduling, backend_of(scheduling.backend).rules, usage, request)
    tell_result(output_format, simulation_data(scheduling, found), simulation_text(found))
    return ExitCode.OK


def _request(job: TextIO, name: str, priority: str | None) -> JobRequest:
    """The job with the options applied. Raises PaiError."""
    try:
        request = read_job_request(job.read())
    except (JobRequestError, UnicodeDecodeError) as error:
        raise PaiError(
            f"cannot read {job.name}: {error}",
            code="job-not-simulated",
            remedy="pass one JobSet, batch Job, Volcano Job or Pod, as kubectl would create it",
            exit_code=ExitCode.USAGE,
        ) from error
    queue = replace(request.queue, cluster=name) if name else request.queue
    queue = replace(queue, priority=priority, number=None) if priority else queue
    return replace(request, queue=queue)
