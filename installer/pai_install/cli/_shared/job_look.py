"""`job list`, `job show` and `job logs`: how jobs stand, and what they printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click

from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.job_cluster import jobs_of
from pai_install.cli._shared.tell import say, tell_result
from pai_install.cli.options import format_option, site_option
from pai_install.cluster.client import ClusterClient, Select
from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.anomalies import abnormal, unknown
from pai_install.jobs.compile import names
from pai_install.jobs.history import JobRecord
from pai_install.jobs.pod_status import Instance
from pai_install.jobs.state import PODS, JobState
from pai_install.kube.model import Ref
from pai_install.kube.objects import child, words
from pai_install.report.jobs import job_data, job_text, jobs_data, jobs_text
from pai_install.run.environment import Environment
from pai_install.site.model import Site
from pai_install.site.use_limits import UseLimits, limits_of
from pai_install.users.directory import owner_of

name_argument = click.argument("name", metavar="NAME")
group_option = click.option("--group", default="", metavar="GROUP", help="Only jobs of this group.")


@click.command(name="list")
@site_option
@group_option
@click.option("--user", default="", metavar="USER", help="Only jobs of this user.")
@click.option("--all", "also_gone", is_flag=True, help="Also jobs that are gone, of which a record is kept.")
@click.option("--abnormal", "unusual", is_flag=True, help="Only jobs that run for long, or use no GPU of theirs.")
@click.option(
    "--days", type=click.FloatRange(0), help="For --abnormal: what long is.  [default: what the site says, else 5]"
)
@format_option
@pass_environment
def list_command(
    *,
    site_dir: Path,
    group: str,
    user: str,
    also_gone: bool,
    unusual: bool,
    days: float | None,
    output_format: str,
    environment: Environment,
) -> int:
    """List jobs: how each stands, and what those that wait are waiting for, in the scheduler's words.

    With --abnormal those that run for days, whose GPUs do nothing, and notebooks that no one uses, the longest first.
    The machines measure how busy NVIDIA GPUs are; of which jobs they do not say it, is said. Exit code 5 when no
    control plane answers, 6 when the API refuses.
    """
    with jobs_of(site_dir, environment) as jobs:
        namespace = jobs.namespace_of(group)
        there = jobs.all(namespace)
        known = (*jobs.gone(there, namespace), *there) if also_gone else there
    found = tuple(job for job in known if owner_of(user) in {"", job.user})
    if unusual:
        now = datetime.now(UTC)
        if not_known := unknown(found, now):
            say(f"how busy their GPUs are is not known of {', '.join(not_known)}")
        found = abnormal(found, now, lambda cluster: _limits(jobs.site, cluster, days))
    tell_result(output_format, jobs_data(found), jobs_text(found))
    return ExitCode.OK


def _limits(site: Site, cluster: str, days: float | None) -> UseLimits:
    limits = limits_of(site, cluster)
    return limits if days is None else replace(limits, long=replace(limits.long, after_s=int(days * 86400)))


@click.command()
@site_option
@name_argument
@group_option
@format_option
@pass_environment
def show(*, site_dir: Path, name: str, group: str, output_format: str, environment: Environment) -> int:
    """Show a job: its state, on which machine each pod is, exit codes, retries, and why it waits.

    Of a job that is gone it shows how it stood, for as long as `jobs: {keep-days: N}` says; of several the last one.
    """
    with jobs_of(site_dir, environment) as jobs:
        found, _ = jobs.known(name, group)
    tell_result(output_format, job_data(found), job_text(found))
    return ExitCode.OK


@click.command()
@site_option
@name_argument
@group_option
@click.option("--role", default="", metavar="ROLE", help="Only instances of this role.")
@click.option("--index", type=click.IntRange(0), default=None, help="Only the instance of this number.")
@click.option("--follow", is_flag=True, help="Go on as the log grows, until the instance ends; of one instance.")
@pass_environment
def logs(
    *, site_dir: Path, name: str, group: str, role: str, index: int | None, follow: bool, environment: Environment
) -> int:
    """Print what a job's instances wrote: of one as it is, of several with ROLE-INDEX before each line.

    Of pods that are gone it prints the last lines, as far as they are kept.
    """
    with jobs_of(site_dir, environment) as jobs:
        job, kept = jobs.known(name, group)
        chosen = instances_of(job, role, index)
        if follow:
            _require_one(chosen)
        if follow and not chosen[0].gone:
            for line in jobs.client.follow(Ref("pod", chosen[0].pod, job.namespace)):
                click.echo(line)
        elif len(chosen) == 1 and chosen[0].state in {"WAITING", "STARTING"}:
            say(f"{chosen[0].role} {chosen[0].index} has written nothing yet: {chosen[0].state}")
        elif len(chosen) == 1:
            click.echo(_written(jobs.client, job, kept, chosen).get(chosen[0].pod, ""), nl=False)
        elif chosen:
            found = _written(jobs.client, job, kept, chosen)
            for one in chosen:
                for line in found.get(one.pod, "").splitlines():
                    click.echo(f"{one.role}-{one.index}: {line}")
    if not chosen:
        say(f"{job.name} has no pods: {job.state}{f', {job.why}' if job.why else ''}")
    return ExitCode.OK


def _written(client: ClusterClient, job: JobState, kept: JobRecord | None, chosen: list[Instance]) -> Mapping[str, str]:
    """What pods wrote, by their names: those that are there, and last lines of the others."""
    there, found = [one for one in chosen if not one.gone], {}
    if len(there) == 1:
        found[there[0].pod] = client.logs(Ref("pod", there[0].pod, job.namespace))
    elif there:
        found.update(client.logs_of(Select((PODS,), job.namespace, _pods_of(job))))
    if kept is not None and len(there) < len(chosen):
        (lines,) = client.get([Ref("configmap", kept.logs, kept.namespace)])
        found |= {pod: text for pod, text in words(child(lines or {}, "data")).items() if pod not in found}
    return found


def _pods_of(job: JobState) -> str:
    """The selector of a job's pods."""
    return f"{job.kind.marks.job}={job.label}" if job.kind.marks else f"{names.USER}={job.user}"


def instances_of(job: JobState, role: str, index: int | None) -> list[Instance]:
    """Those that are there, of a role or of all. Raises PaiError for a role or number that the job does not have."""
    roles = {one.name: one for one in job.roles}
    if role and role not in roles:
        raise _usage("unknown-role", f"{job.name} has no role {role}", f"it has {', '.join(roles)}")
    chosen = [roles[role]] if role else list(job.roles)
    if index is not None and all(index >= one.wanted for one in chosen):
        raise _usage(
            "unknown-instance",
            f"{job.name} has no instance {index}",
            f"it has {max(one.wanted for one in chosen)}, from 0 on",
        )
    return [one for it in chosen for one in it.instances if index in {None, one.index}]


def _require_one(chosen: list[Instance]) -> None:
    if len(chosen) != 1:
        there = ", ".join(f"{one.role} {one.index}" for one in chosen) or "none"
        raise _usage(
            "follow-needs-one-instance",
            f"--follow is for one instance, and there are {len(chosen)}: {there}",
            "add --role and --index",
        )


def _usage(code: str, message: str, remedy: str) -> PaiError:
    return PaiError(message, code=code, remedy=remedy, exit_code=ExitCode.USAGE)
