"""`pai-install plan`: what apply would change, and why."""

from __future__ import annotations

import click

from pai_install.app.context import App
from pai_install.app.runs import plan_site
from pai_install.cli.command import known_checks, reading
from pai_install.cli.options import accept_new_option, force_check_option
from pai_install.cli.terminal import Terminal
from pai_install.operations.install import Install
from pai_install.report.diffs import changes_text
from pai_install.report.planned import plan_data, plan_text


@click.command
@reading(Install, force_check_option, accept_new_option, enduring=True)
@click.option("--no-diff", is_flag=True, help="Only phases, machines and reasons; faster.")
def command(*, app: App, terminal: Terminal, request: Install, forced: tuple[str, ...], no_diff: bool) -> int:
    """Show what apply would change, and why; changes nothing.

    Exit code 0 also when there is something to do, 6 when a machine cannot be observed, 5 when one did not
    answer, 4 when preflight refuses one that was never touched before. The JSON form can be given to `apply --plan`.
    """
    report = plan_site(app, request, diff=not no_diff, forced_checks=known_checks(forced))
    text = plan_text(report.plan)
    if report.changes:
        text += f"\n{changes_text(report.changes)}"
    terminal.show(plan_data(report.plan, report.changes, report.refused), text)
    return report.exit_code
