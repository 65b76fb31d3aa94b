"""`pai-install scheduler test`: does the scheduler keep what it promises?"""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.cli._shared.act import How, SiteRequest, outcome_of
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.look import checked
from pai_install.cli.options import format_option, seconds_option, site_option
from pai_install.operations.scheduler_test import SchedulerTest
from pai_install.report.promises import promises_text
from pai_install.run.environment import Environment
from pai_install.scheduling.model import BACKENDS


@click.command()
@site_option
@click.option(
    "--backend",
    type=click.Choice(BACKENDS),
    default=None,
    show_default="the site's",
    help="The scheduler to test.",
)
@click.option("--disruptive", is_flag=True, help="Also stop the scheduler of jobs for a moment: jobs that come wait.")
@seconds_option("--back", 5, 600, 30, "In which an owner must have back what it lent.")
@seconds_option("--wait", 30, 3600, 90, "How long one thing is waited for.")
@format_option
@pass_environment
def test(
    *,
    site_dir: Path,
    backend: str | None,
    disruptive: bool,
    back_s: int,
    wait_s: int,
    output_format: str,
    environment: Environment,
) -> int:
    """Show with small jobs that the scheduler keeps what it promises: gangs, quota, lending, taking back, priority.

    Pods that sleep run on two workers, in namespaces and queues of the test's own, and hold devices that only the test
    knows: no queue, quota or job of a user is touched, and no pod of the test evicts one of theirs. Everything is
    removed at the end; what a killed run left goes with the next one. Exit code 7 if a promise is broken.
    """
    given = {"backend": backend or "", "disruptive": disruptive, "back_s": back_s, "wait_s": wait_s}
    how = How(yes=True, as_json=output_format == "json")
    outcome = outcome_of(SiteRequest(site_dir, checked(SchedulerTest, **given)), environment, how)
    assert outcome is not None  # noqa: S101 - no one was asked
    if not how.as_json:
        click.echo(promises_text(outcome.findings), nl=False)
    return outcome.exit_code
