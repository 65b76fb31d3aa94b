"""`pai-install job`: jobs of OpenPAI's protocols and of Kubernetes."""

from __future__ import annotations

from collections.abc import Sequence

import click

from pai_install.app.context import App
from pai_install.app.job_submission import SubmitJob, submit_job
from pai_install.app.job_validation import ValidateJobs, validate_jobs
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
from pai_install.cli.options import group_site_option, text_only, yes_option
from pai_install.cli.output import echo, echo_log
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode
from pai_install.jobs.state import JobState
from pai_install.report.job import readings_data, readings_text
from pai_install.report.jobs import job_data, job_text, jobs_data, jobs_text


@click.group
@group_site_option
def command() -> None:
    """Submit, list, inspect, and stop jobs."""


@command.command()
@reading(ValidateJobs)
def validate(*, app: App, terminal: Terminal, request: ValidateJobs) -> int:
    """Check job files, and show the resulting jobs. Creates nothing.

    A FILE is OpenPAI's (JSON of protocol 1, YAML of protocol 2) or has objects of Kubernetes: Job, JobSet, Pod,
    Volcano's Job, TFJob, PyTorchJob. Without a layout.yaml the files are checked by themselves. With --group, a
    cluster that responds checks the jobs by a dry run. Exit code 3 when a file has errors. Each error has file, line,
    column, and a remedy.
    """
    readings = validate_jobs(app, request)
    terminal.show(readings_data(readings), readings_text(readings))
    return ExitCode.OK if all(one.job is not None for one in readings) else ExitCode.SITE_INVALID


@command.command()
@reading(SubmitJob)
def submit(*, app: App, terminal: Terminal, request: SubmitJob) -> int:
    """Submit a job: an OpenPAI file (v1 JSON, v2 YAML) or Kubernetes objects.

    An OpenPAI file becomes a gang of the site's scheduler. Kubernetes objects (Job, JobSet, Volcano's Job, TFJob,
    PyTorchJob, Pod, and ConfigMaps, Secrets, and Services beside them) keep their specification. They get the group's
    namespace, a virtual cluster, a priority, and an owner. Objects that contradict these are rejected, and so are
    objects that the group may not create.

    A job starts as a whole when its quota is free. The scheduler `default` starts pods one by one. With --watch the
    exit code is 6 when the job fails. Ctrl-C leaves it running.
    """
    submitted = submit_job(app, request)
    if terminal.as_json or not request.watch:
        _show(terminal, submitted.jobs)
    return submitted.exit_code


def _show(terminal: Terminal, jobs: Sequence[JobState]) -> None:
    """One job by itself, several as a list."""
    if len(jobs) == 1:
        terminal.show(job_data(jobs[0]), job_text(jobs[0]))
    elif jobs:
        terminal.show(jobs_data(jobs), jobs_text(jobs))


@command.command(name="list")
@reading(ListJobs)
def list_command(*, app: App, terminal: Terminal, request: ListJobs) -> int:
    """List jobs with their state, and the scheduler's reason for jobs that wait.

    --abnormal lists jobs that run for days, jobs with idle GPUs, and unused notebooks, the longest first. Machines
    measure NVIDIA GPUs. Jobs without a measurement are named. Exit code 5 when no control plane answers, 6 when the API
    refuses.
    """
    found = list_jobs(app, request)
    terminal.show(jobs_data(found), jobs_text(found))
    return ExitCode.OK


@command.command()
@reading(JobName)
def show(*, app: App, terminal: Terminal, request: JobName) -> int:
    """Show a job: state, the node of each pod, exit codes, retries, and the reason to wait.

    A deleted job is shown for as long as `jobs: {keep-days: N}` keeps its record. The latest job of a name is shown.
    """
    found = show_job(app, request)
    terminal.show(job_data(found), job_text(found))
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
