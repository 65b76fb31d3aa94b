"""`pai-install vc`: virtual clusters, their use, and changes of both."""

from __future__ import annotations

from typing import BinaryIO

import click

from pai_install.app.context import App
from pai_install.app.virtual_clusters import (
    SimulateJob,
    VirtualClusterName,
    VirtualClusterUsage,
    list_virtual_clusters,
    plan_virtual_clusters,
    show_virtual_cluster,
    simulate_job,
    usage_of_virtual_clusters,
)
from pai_install.cli.command import reading
from pai_install.cli.lazy import LazyGroup
from pai_install.cli.options import group_site_option
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode
from pai_install.jobs.job_file import MAX_BYTES
from pai_install.report.virtual_cluster import virtual_cluster_report, virtual_cluster_text
from pai_install.report.virtual_clusters import virtual_clusters_report, virtual_clusters_text
from pai_install.report.virtual_clusters_plan import clusters_change_report, plan_text
from pai_install.report.virtual_clusters_simulation import simulation_report, simulation_text
from pai_install.report.virtual_clusters_usage import quota_usage_report, quota_usage_text


@click.group("vc", cls=LazyGroup, later={"apply": "vc_changes", "migrate": "vc_changes"})
@group_site_option
def command() -> None:
    """Show, simulate, and change virtual clusters."""


@command.command(name="list")
@reading()
def list_command(*, app: App, terminal: Terminal) -> int:
    """List the virtual clusters, the capacity of their nodes, and guarantees that cannot be met now.

    If the site has a cluster that answers, cordoned, missing, and smaller nodes count as well.
    """
    found = list_virtual_clusters(app)
    report = virtual_clusters_report(found.scheduling, found.remarks, found.limits, found.unmet)
    terminal.show(report, virtual_clusters_text(report))
    return ExitCode.OK


@command.command()
@reading(VirtualClusterName)
def show(*, app: App, terminal: Terminal, request: VirtualClusterName) -> int:
    """Show the guarantees, pinned machines, groups, and priorities of a virtual cluster.

    Reads the site only.
    """
    report = virtual_cluster_report(show_virtual_cluster(app, request), request.name)
    terminal.show(report, virtual_cluster_text(report))
    return ExitCode.OK


@command.command()
@reading(VirtualClusterUsage)
def usage(*, app: App, terminal: Terminal, request: VirtualClusterUsage) -> int:
    """Show used, lent, and borrowed quota and waiting jobs of one or all virtual clusters.

    Guarantees that cannot be met now are listed with the nodes that are missing. Exit code 5 when no control plane
    answers, 6 when the API refuses.
    """
    report = quota_usage_report(*usage_of_virtual_clusters(app, request), request.name)
    terminal.show(report, quota_usage_text(report))
    return ExitCode.OK


@command.command()
@reading()
def plan(*, app: App, terminal: Terminal) -> int:
    """Show how the next apply changes virtual clusters, and the affected jobs.

    Compares the site with the virtual clusters that the cluster was given last. Changes nothing. Exit code 5 when no
    control plane answers, 6 when the API refuses.
    """
    change = plan_virtual_clusters(app)
    terminal.show(clusters_change_report(change), plan_text(change))
    return ExitCode.OK


@command.command()
@reading(SimulateJob, click.argument("job", metavar="JOB.yaml", type=click.File("rb")))
def simulate(*, app: App, terminal: Terminal, request: SimulateJob, job: BinaryIO) -> int:
    """Check a job against the quotas before you submit it.

    The answer is one of: the job fits the guarantee, would borrow, needs preemption, must wait for quota, can never
    run, or is refused. It counts quota and not places on machines, so exit code 0 does not mean that the job starts.
    JOB.yaml holds one JobSet, batch Job, Volcano Job, Pod, TFJob or PyTorchJob. Use - for standard input. Only the
    Kubernetes API is queried. Exit code 5 if no control plane answers, 6 if the API refuses.
    """
    scheduling, answer = simulate_job(app, request, getattr(job, "name", "-"), job.read(MAX_BYTES + 1))
    terminal.show(simulation_report(scheduling, answer), simulation_text(answer))
    return ExitCode.OK
