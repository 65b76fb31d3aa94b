"""`pai-install apply`: make the machines what the site says, and prove it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from pai_install.apply.pipeline import Request, Session, open_session, perform, prepare, preview, require_unmoved
from pai_install.apply.wiring import Wiring, product_wiring
from pai_install.cli.options import (
    accept_new_option,
    format_option,
    limit_option,
    phase_option,
    site_option,
    yes_option,
)
from pai_install.errors import ExitCode, PaiError
from pai_install.plan.model import Plan
from pai_install.report.console import progress, show_outcome
from pai_install.report.data import report_data
from pai_install.report.diffs import changes_text
from pai_install.report.model import Outcome
from pai_install.report.planned import plan_text
from pai_install.site.pending import pending
from pai_install.site.problem import text_lines


@click.command
@site_option
@yes_option
@limit_option
@phase_option
@click.option("--check", is_flag=True, help="Only show what would change, with file differences.")
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Go on only if the plan is still the one in this file (written by `plan --format json`).",
)
@accept_new_option
@format_option
def command(
    *,
    site_dir: Path,
    yes: bool,
    limit: tuple[str, ...],
    phases: tuple[str, ...],
    check: bool,
    plan_file: Path | None,
    accept_new: bool,
    output_format: str,
) -> int:
    """Make the machines what the site says, and prove it.

    Machines that already are as the site says are left alone. One that fails or does not answer stops none of
    the others; running the same command again continues. Reports are kept below SITE/.pai/runs.
    """
    request = Request(site_dir, phases, limit, accept_new)
    return apply(request, product_wiring(), yes=yes, check=check, plan_file=plan_file, as_json=output_format == "json")


def apply(request: Request, wiring: Wiring, *, yes: bool, check: bool, plan_file: Path | None, as_json: bool) -> int:
    """Runs the verb and gives its exit code."""
    with (
        progress(sys.stderr) as observer,
        open_session(request, wiring, verb="apply", progress=observer, say=say) as session,
    ):
        tell_beginning(session)
        prepared = prepare(session)
        if plan_file is not None:
            require_unmoved(plan_file, prepared.plan)
        if not as_json:
            say(plan_text(prepared.plan))
        if check:
            outcome, changes = preview(session, prepared)
            click.echo(changes_text(changes), nl=False, err=as_json)
        else:
            _confirm(prepared.plan, yes=yes)
            outcome = perform(session, prepared)
        _show(outcome, session, as_json=as_json, check=check)
        return outcome.exit_code


def say(line: str) -> None:
    """Tells the user something while the verb runs; stdout is for its result."""
    click.echo(line, err=True)


def tell_beginning(session: Session) -> None:
    """Says what is worth knowing first: the site's warnings, and a run that never ended."""
    for line in text_lines(session.loaded.problems):
        say(line)
    for line in pending(session.site):
        say(f"not yet: {line}")
    before = session.interrupted
    if before is not None:
        where = f" in phase {before.phase} ({', '.join(before.hosts)})" if before.phase else ""
        say(f"the run {before.run} was cut off{where}; looking at the machines again")


def _confirm(plan: Plan, *, yes: bool) -> None:
    if yes or plan.empty:
        return
    if not sys.stdin.isatty():
        raise PaiError("there is nobody to ask whether to go on", remedy="add --yes", exit_code=ExitCode.USAGE)
    hosts = {step.host for phase in plan.phases for step in phase.hosts}
    click.confirm(f"run {len(plan.phases)} phases on {len(hosts)} machines?", abort=True, err=True)


def _show(outcome: Outcome, session: Session, *, as_json: bool, check: bool) -> None:
    if as_json:
        click.echo(json.dumps(report_data(outcome), indent=2))
        return
    show_outcome(outcome, sys.stdout)
    if not check:
        click.echo(f"report: {session.run.report('html')}")
