"""`pai-install scheduler`: the scheduler of jobs."""

from __future__ import annotations

import click

from pai_install.app.context import App, RunOptions
from pai_install.app.scheduler import SwitchScheduler, run_self_test, switch_scheduler
from pai_install.cli.command import acting, checking
from pai_install.cli.options import group_site_option
from pai_install.cli.output import echo
from pai_install.cli.terminal import Terminal
from pai_install.operations.scheduler_test import SchedulerTest
from pai_install.report.promises import promises_text


@click.group
@group_site_option
def command() -> None:
    """Test the scheduler's guarantees, or switch to another scheduler."""


@command.command()
@acting(SwitchScheduler)
def switch(*, app: App, run: RunOptions, request: SwitchScheduler) -> int:
    """Replace the scheduler: edit services-configuration.yaml, remove the old scheduler, and apply the site.

    Running and pending jobs of the old scheduler block the switch and are listed. The objects of ended jobs are
    deleted. The old scheduler is removed before the new one is installed. Run the same command, or apply, after an
    interruption. At the end the self-test checks the guarantees of the new scheduler.
    """
    return switch_scheduler(app, request, run)


@command.command()
@checking(SchedulerTest)
def test(*, app: App, terminal: Terminal, request: SchedulerTest) -> int:
    """Test gangs, quota, lending, reclaim, and priority with small jobs.

    Sleeping pods run on two workers, in namespaces and queues of the test, with test devices. Queues, quota, and jobs
    of users do not change, and no pod of a user is evicted. The test removes all its objects at the end, or in the next
    run after an interruption. Exit code 7 if a guarantee is not met.
    """
    findings, code = run_self_test(app, request)
    if not terminal.as_json:
        echo(promises_text(findings), nl=False)
    return code
