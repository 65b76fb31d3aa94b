"""`job stop`: ends a job and takes all of it away."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.cli._shared.act import require_terminal
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.job_cluster import jobs_of
from pai_install.cli._shared.job_look import group_option, name_argument
from pai_install.cli._shared.tell import say
from pai_install.cli.options import site_option, yes_option
from pai_install.cluster.client import Select
from pai_install.errors import ExitCode
from pai_install.run.environment import Environment
from pai_install.system.words import plural

# pods have half a minute to end
_GONE_S = 90


@click.command()
@site_option
@name_argument
@group_option
@yes_option
@pass_environment
def stop(*, site_dir: Path, name: str, group: str, yes: bool, environment: Environment) -> int:
    """Stop a job: all its pods end, what they hold is free, and its name too. One that has ended is removed.

    The cluster keeps nothing of it; print its logs first if you need them.
    """
    with jobs_of(site_dir, environment) as jobs:
        job = jobs.one(name, group)
        if not (yes or _agreed(f"stop {job.name} of {job.user} ({job.state}, {plural(len(job.instances), 'pod')})?")):
            say("nothing was done")
            return ExitCode.PREFLIGHT_FAILED
        own = Select((job.kind.asked,), job.namespace, fields=f"metadata.name={job.label}")
        jobs.client.delete_selected(own, wait_s=_GONE_S)
    say(f"{job.name} is gone")
    return ExitCode.OK


def _agreed(question: str) -> bool:
    """Asks. Raises PaiError where no one can be asked."""
    require_terminal()
    return click.confirm(question, err=True)
