"""`pai-install plan`: what apply would change, and why."""

from __future__ import annotations

import json
import sys

import click

from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.tell import say, tell_beginning, tell_preflight
from pai_install.cli.options import format_option
from pai_install.cli.run_options import run_options
from pai_install.report.console import progress
from pai_install.report.diffs import FileChange, changes_text
from pai_install.report.planned import plan_data, plan_text
from pai_install.run.environment import Environment
from pai_install.run.pipeline import admit, open_session, prepare, preview
from pai_install.run.request import Request
from pai_install.system.output import output_may_be_lost


@click.command
@run_options
@click.option("--no-diff", is_flag=True, help="Only phases, machines and reasons; faster.")
@format_option
@pass_environment
def command(*, request: Request, no_diff: bool, output_format: str, environment: Environment) -> int:
    """Show what apply would change, and why; changes nothing.

    Exit code 0 also when there is something to do, 6 when a machine cannot be observed, 5 when one did not
    answer, 4 when preflight refuses one that was never touched before. The JSON form can be given to `apply --plan`.
    """
    return plan(request, environment, diff=not no_diff, as_json=output_format == "json")


def plan(request: Request, environment: Environment, *, diff: bool, as_json: bool) -> int:
    """Runs the verb and gives its exit code."""
    changes: tuple[FileChange, ...] | None = () if diff else None
    with (
        output_may_be_lost(),
        progress(sys.stderr) as observer,
        open_session(request, environment, verb="plan", progress=observer, say=say) as session,
    ):
        tell_beginning(session)
        prepared = prepare(session)
        prepared = admit(session, prepared)
        tell_preflight(prepared)
        exit_code = prepared.exit_code
        if diff and not prepared.plan.empty:
            outcome, changes = preview(session, prepared)
            exit_code = outcome.exit_code or prepared.exit_code
        if as_json:
            click.echo(json.dumps(plan_data(prepared.plan, changes, prepared.refused), indent=2))
        else:
            click.echo(plan_text(prepared.plan), nl=False)
            if changes:
                click.echo(f"\n{changes_text(changes)}", nl=False)
        return exit_code
