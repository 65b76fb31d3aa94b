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
from pai_install.app.web_page import web_page_address
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
    later={
        "connect": "job_connection",
        "submit": "job_submission",
        "template": "job_template",
        "validate": "job_submission",
    },
)
@group_site_option
def command() -> None:
    """Submit, list, inspect, and stop jobs."""


@command.command(name="list")
@reading(ListJobs)
def list_command(*, app: App, terminal: Terminal, request: ListJobs) -> int:
    """List jobs with their state and, for pending jobs, the scheduler's reason.

    --abnormal lists jobs that run for days, jobs with idle GPUs, and unused notebooks, the longest first. Machines
    measure NVIDIA GPUs. Jobs without a measurement are listed. Exit code 5 if no control plane answers, 6 if the API
    rejects the request.
    """
    found = list_jobs(app, request)
    terminal.show(partial(jobs_report, found), jobs_text(found))
    return ExitCode.OK


@command.command()
@reading(JobName)
def show(*, app: App, terminal: Terminal, request: JobName) -> int:
    """Show a job: its state, nodes, exit codes, retries, and the reason if it is pending.

    Deleted jobs remain visible for `jobs: {keep-days: N}` days. If a name was reused, the latest job is shown.
    """
    found = show_job(app, request)
    terminal.show(partial(job_report, found), job_text(found))
    return ExitCode.OK


@command.command()
@reading(JobLogs, formats=text_only)
def logs(*, app: App, request: JobLogs) -> int:
    """Print the output of a job's instances. With several instances each line begins with ROLE-INDEX.

    For deleted pods, the last lines of the job history are printed. Control characters are escaped to protect your
    terminal, except tabs and line ends. --raw prints them unchanged.
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

    Secrets are printed as `******`. For a deleted job, the file comes from the job history.
    """
    content = read_job_file(app, request)
    # A pipe into a file should give the file as it was.
    echo(content, nl=not content.endswith("\n"))
    return ExitCode.OK


@command.command(name="open")
@reading(JobName, formats=text_only)
def open_command(*, app: App, request: JobName) -> int:
    """Print the address at which the owner opens the web page of a job, such as a notebook."""
    echo(web_page_address(app, request))
    return ExitCode.OK


@command.command()
@reading(StopJob, yes_option, formats=text_only)
def stop(*, app: App, request: StopJob) -> int:
    """Stop a job and delete it. This releases its quota and its name.

    The job history keeps its record and last lines for `jobs: {keep-days: N}` days.
    """
    return stop_job(app, request)
