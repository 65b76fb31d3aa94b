"""`pai-install apply`: bring the machines to the state that the site describes, and verify the cluster."""

from __future__ import annotations

import click

from pai_install.cli._shared.act import How, act, acting_options
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli.run_options import run_options
from pai_install.run.environment import Environment
from pai_install.run.request import Request


@click.command
@run_options
@acting_options
@pass_environment
def command(*, request: Request, how: How, environment: Environment) -> int:
    """Bring the machines to the state that the site describes, and verify the cluster.

    Machines that already are as the site says are left alone; those that were never touched before go through
    preflight first. One that is refused there, fails or does not answer stops none of the others; running the same
    command again continues. At the end the machines' health is checked. Reports are kept below SITE/.pai/runs.
    """
    return act(request, environment, how)
