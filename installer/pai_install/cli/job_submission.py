"""`pai-install job validate` and `job submit`: the verbs that read job files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import click

from pai_install.app.context import App
from pai_install.app.job_submission import submit_job
from pai_install.app.job_validation import ValidateJobs, validate_jobs
from pai_install.app.requested_job import SubmitJob
from pai_install.cli.command import reading
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode
from pai_install.jobs.state import JobState
from pai_install.report.job import readings_report, readings_text
from pai_install.report.jobs import job_report, job_text, jobs_report, jobs_text


@click.command
@reading(ValidateJobs)
def validate(*, app: App, terminal: Terminal, request: ValidateJobs) -> int:
    """Check job files, and show the resulting jobs. Creates nothing.

    A FILE is OpenPAI's (JSON of protocol 1, YAML of protocol 2) or has objects of Kubernetes: Job, JobSet, Pod,
    Volcano's Job, TFJob, PyTorchJob. Without a layout.yaml, only the files are checked. With --group, a
    cluster that responds checks the jobs by a dry run. Exit code 3 when a file has errors. Each error has file, line,
    column, and a remedy.
    """
    readings = validate_jobs(app, request)
    terminal.show(readings_report(readings), readings_text(readings))
    return ExitCode.OK if all(one.job is not None for one in readings) else ExitCode.SITE_INVALID


@click.command
@reading(SubmitJob)
def submit(*, app: App, terminal: Terminal, request: SubmitJob) -> int:
    """Submit a job: an OpenPAI file (v1 JSON, v2 YAML), Kubernetes objects, or a template.

    An OpenPAI file becomes a gang of the site's scheduler. Kubernetes objects (Job, JobSet, Volcano's Job, TFJob,
    PyTorchJob, Pod, and ConfigMaps, Secrets, and Services beside them) keep their specification. They get the group's
    namespace, a virtual cluster, a priority, and an owner. Objects that contradict these are rejected, and so are
    objects that the group may not create.

    --template uses the file of a template of the group, or of a published template. --set replaces values below
    `parameters:` of an OpenPAI file. The rest of the file does not change.

    A job starts as a whole once its quota is free. The scheduler `default` starts pods one by one. With --watch, the
    exit code is 6 if the job fails. Ctrl-C does not stop the job.
    """
    submitted = submit_job(app, request)
    if terminal.as_json or not request.watch:
        _show(terminal, submitted.jobs)
    return submitted.exit_code


def _show(terminal: Terminal, jobs: Sequence[JobState]) -> None:
    """One job by itself, several as a list."""
    if len(jobs) == 1:
        terminal.show(partial(job_report, jobs[0]), job_text(jobs[0]))
    elif jobs:
        terminal.show(partial(jobs_report, jobs), jobs_text(jobs))
