"""`pai-install plan`: what apply would change, and why."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from pai_install.apply.pipeline import Request, open_session, prepare, preview
from pai_install.apply.wiring import Wiring, product_wiring
from pai_install.cli.apply import say, tell_beginning
from pai_install.cli.options import accept_new_option, format_option, limit_option, phase_option, site_option
from pai_install.errors import ExitCode
from pai_install.report.console import progress
from pai_install.report.diffs import FileChange, changes_text
from pai_install.report.planned import plan_data, plan_text


@click.command
@site_option
@limit_option
@phase_option
@click.option("--no-diff", is_flag=True, help="Only phases, machines and reasons; quicker.")
@accept_new_option
@format_option
def command(
    *,
    site_dir: Path,
    limit: tuple[str, ...],
    phases: tuple[str, ...],
    no_diff: bool,
    accept_new: bool,
    output_format: str,
) -> int:
    """Show what apply would change, and why; changes nothing.

    Exit code 0 also when there is something to do, 5 when a machine did not answer. The JSON form can be
    given to `apply --plan`.
    """
    request = Request(site_dir, phases, limit, accept_new)
    return plan(request, product_wiring(), diff=not no_diff, as_json=output_format == "json")


def plan(request: Request, wiring: Wiring, *, diff: bool, as_json: bool) -> int:
    """Runs the verb and gives its exit code."""
    changes: tuple[FileChange, ...] = ()
    with (
        progress(sys.stderr) as observer,
        open_session(request, wiring, verb="plan", progress=observer, say=say) as session,
    ):
        tell_beginning(session)
        prepared = prepare(session)
        unseen = bool(prepared.plan.unreachable)
        exit_code = ExitCode.UNREACHABLE if unseen else ExitCode.OK
        if diff and not prepared.plan.empty:
            outcome, changes = preview(session, prepared)
            exit_code = outcome.exit_code
        if as_json:
            click.echo(json.dumps(plan_data(prepared.plan, changes), indent=2))
        else:
            click.echo(plan_text(prepared.plan), nl=False)
            if changes:
                click.echo(f"\n{changes_text(changes)}", nl=False)
        return exit_code
