"""`pai-install job`: jobs of OpenPAI's protocols and of Kubernetes."""

from __future__ import annotations

from functools import partial

import click

from pai_install.app.context import App
from pai_install.app.jobs import (
    JobLogs,
    JobName,
    ListJobs,
    StopJob,
    list_jobs,
    print_job_logs,
    read_job_file,
    show_job,
    stop_job,
)
from pai_install.cli.command import reading
from pai_install.cli.lazy import LazyGroup
from pai_install.cli.options import group_site_option, text_only, yes_option
from pai_install.cli.output import echo, echo_log
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode
from pai_install.report.jobs import job_report, job_text, jobs_report, jobs_text


@click.group(
    "job",
    cls=LazyGroup,
    later={"submit": "job_submission", "validate": "job_submission", "template": "job_template"},
)
@group_site_option
def command() -> None:
    """Submit, list, inspect, and stop jobs."""


@command.command(name="list")
@reading(ListJobs)
def list_command(*, app: App, terminal: Terminal, request: ListJobs) -> int:
    """List jobs with their state, and the scheduler's reason for jobs that wait.

    --abnormal lists jobs that run for days, jobs with idle GPUs, and unused notebooks, the longest first. Machines
    measure NVIDIA GPUs. Jobs without a measurement are named. Exit code 5 when no control plane answers, 6 when the API
    refuses.
    """
    found = list_jobs(app, request)
    terminal.show(partial(jobs_report, found), jobs_text(found))
    return ExitCode.OK


@command.command()
@reading(JobName)
def show(*, app: App, terminal: Terminal, request: JobName) -> int:
    """Show a job: state, the node of each pod, exit codes, retries, and the reason to wait.

    A deleted job is shown for as long as `jobs: {keep-days: N}` keeps its record. The latest job of a name is shown.
    """
    found = show_job(app, request)
    terminal.show(partial(job_report, found), job_text(found))
    return ExitCode.OK


@command.command()
@reading(JobLogs, formats=text_only)
def logs(*, app: App, request: JobLogs) -> int:
    """Print the output of a job's instances. With several instances each line begins with ROLE-INDEX.

    The last lines of deleted pods are printed if a record has them. Control characters but tabs and line ends appear
    escaped, so that no job can steer your terminal. --raw prints them unchanged.
    """
    found = print_job_logs(app, request)
    for one in found:
        prefix = f"{one.instance.role}-{one.instance.index}: " if len(found) > 1 else ""
        text = "".join(f"{prefix}{line}\n" for line in _lines(one.text)) if prefix else one.text
        echo_log(text)
    return ExitCode.OK


def _lines(text: str) -> list[str]:
    """The lines of a text. Other characters of --raw that end lines stay as they are."""
    return text.removesuffix("\n").split("\n") if text else []


@command.command()
@reading(JobName, formats=text_only)
def file(*, app: App, request: JobName) -> int:
    """Print the file of a job as it was submitted.

    Secrets are printed as `******`. The file of a deleted job is printed if its record has it.
    """
    content = read_job_file(app, request)
    echo(content, nl=not content.endswith("\n"))
    return ExitCode.OK


@command.command()
@reading(StopJob, yes_option, formats=text_only)
def stop(*, app: App, request: StopJob) -> int:
    """Stop a job and delete it. Its pods end, and its quota and its name are free.

    A record of it, with its last lines, is kept for the days that the site sets.
    """
    return stop_job(app, request)
