"""`job stop`: ends a job and takes all of it away."""

from __future__ import annotations

import getpass
from pathlib import Path

import click

from pai_install.cli._shared.act import require_terminal
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.job_cluster import jobs_of
from pai_install.cli._shared.job_look import group_option, name_argument
from pai_install.cli._shared.tell import say
from pai_install.cli.options import site_option, yes_option
from pai_install.cluster.client import Patch, Select
from pai_install.errors import ExitCode
from pai_install.jobs.compile import names
from pai_install.jobs.pod_status import ENDED
from pai_install.jobs.state import JobState
from pai_install.kube.model import Ref
from pai_install.run.environment import Environment
from pai_install.system.words import plural

# pods have half a minute to end
_GONE_S = 90


@click.command()
@site_option
@name_argument
@group_option
@click.option("--why", default="", metavar="TEXT", help="Why, for whoever asks later: job show says it.")
@yes_option
@pass_environment
def stop(*, site_dir: Path, name: str, group: str, why: str, yes: bool, environment: Environment) -> int:
    """Stop a job: all its pods end, what they hold is free, and its name too. One that has ended is removed.

    What became of it, its last lines too, is kept for the days that the site says.
    """
    with jobs_of(site_dir, environment) as jobs:
        job = jobs.one(name, group)
        if not (yes or _agreed(f"stop {job.name} of {job.user} ({job.state}, {plural(len(job.instances), 'pod')})?")):
            say("nothing was done")
            return ExitCode.PREFLIGHT_FAILED
        if job.state not in ENDED:
            jobs.client.patch([_said(job, why)])
        own = Select((job.kind.asked,), job.namespace, fields=f"metadata.name={job.label}")
        jobs.client.delete_selected(own, wait_s=_GONE_S)
    say(f"{job.name} is gone")
    return ExitCode.OK


def _said(job: JobState, why: str) -> Patch:
    """Who ends it and why, which goes into its record."""
    notes = {names.STOPPED_BY: getpass.getuser(), **({names.STOPPED_WHY: why} if why else {})}
    return Patch(Ref(job.kind.asked, job.label, job.namespace), {"metadata": {"annotations": notes}})


def _agreed(question: str) -> bool:
    """Asks. Raises PaiError where no one can be asked."""
    require_terminal()
    return click.confirm(question, err=True)
