"""`pai-install scheduler`: the scheduler of jobs."""

from __future__ import annotations

import click

from pai_install.cli._shared.scheduler_test import test


@click.group
def command() -> None:
    """The scheduler of jobs: show that it keeps what it promises."""


command.add_command(test)
