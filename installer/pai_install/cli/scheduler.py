"""`pai-install scheduler`: the scheduler of jobs."""

from __future__ import annotations

import click

from pai_install.cli._shared.scheduler_switch import switch
from pai_install.cli._shared.scheduler_test import test
from pai_install.cli.options import group_site_option


@click.group
@group_site_option
def command() -> None:
    """The scheduler of jobs: show that it keeps what it promises, or have another one."""


command.add_command(switch)
command.add_command(test)
