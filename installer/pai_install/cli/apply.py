"""`pai-install apply`: make the machines what the site says, and prove it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from pai_install.cli.options import format_option, yes_option
from pai_install.cli.run_options import run_options
from pai_install.errors import ExitCode, PaiError
from pai_install.preflight.report import last_line
from pai_install.preflight.report import text as preflight_text
from pai_install.report.console import progress, show_outcome
from pai_install.report.data import report_data
from pai_install.report.diffs import changes_text
from pai_install.report.model import Outcome
from pai_install.report.planned import plan_text
from pai_install.run.pipeline import (
    Prepared,
    Request,
    Session,
    admit,
    open_session,
    perform,
    prepare,
    preview,
)
from pai_install.run.saved import SavedPlan, read_plan
from pai_install.run.signals import finishing
from pai_install.run.wiring import Wiring, product_wiring
from pai_install.site.pending import pending
from pai_install.site.problem import text_lines
from pai_install.system.output import output_may_be_lost


@click.command
@run_options
@yes_option
@click.option("--check", is_flag=True, help="Only show what would change, with file differences.")
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Go on only if the plan is still the one in this file (written by `plan --format json`).",
)
@format_option
def command(*, request: Request, yes: bool, check: bool, plan_file: Path | None, output_format: str) -> int:
    """Make the machines what the site says, and prove it.

    Machines that already are as the site says are left alone; those that were never touched before go through
    preflight first. One that is refused there, fails or does not answer stops none of the others; running the same
    command again continues. At the end the machines' health is checked. Reports are kept below SITE/.pai/runs.
    """
    return apply(request, product_wiring(), yes=yes, check=check, plan_file=plan_file, as_json=output_format == "json")


def apply(request: Request, wiring: Wiring, *, yes: bool, check: bool, plan_file: Path | None, as_json: bool) -> int:
    """Runs the verb and gives its exit code. Raises PaiError where it would have to ask and nobody is there."""
    if not (yes or check or sys.stdin.isatty()):
        raise PaiError("there is nobody to ask whether to go on", remedy="add --yes", exit_code=ExitCode.USAGE)
    saved = read_plan(plan_file) if plan_file is not None else None
    with (
        output_may_be_lost(),
        progress(sys.stderr) as observer,
        open_session(request, wiring, verb="apply", progress=observer, say=say) as session,
    ):
        tell_beginning(session)
        prepared = prepare(session)
        if saved is not None:
            saved.require_unmoved(prepared.plan)
        prepared = admit(session, prepared)
        tell_preflight(prepared)
        if not as_json:
            say(plan_text(prepared.plan))
        if saved is not None and saved.previewed:
            require_same_changes(session, prepared, saved)
        if check:
            outcome, changes = preview(session, prepared)
            click.echo(changes_text(changes), nl=False, err=as_json)
        elif yes or _agreed(prepared):
            outcome = perform(session, prepared)
        else:
            say("nothing was done")
            return ExitCode.PREFLIGHT_FAILED
        with finishing():
            _show(outcome, session, as_json=as_json, check=check)
        return outcome.exit_code


def require_same_changes(session: Session, prepared: Prepared, saved: SavedPlan) -> None:
    """Looks at what would change, and raises PaiError when the saved plan showed something else.

    Raises KeyboardInterrupt on Ctrl-C.
    """
    say("comparing what would change with the saved plan")
    outcome, changes = preview(session, prepared, log=False)
    if outcome.interrupted:
        raise KeyboardInterrupt
    saved.require_same(changes)


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


def tell_preflight(prepared: Prepared) -> None:
    """Says what preflight found: all of it where a machine is refused, else one line."""
    report = prepared.preflight
    if report is None:
        return
    if not report.ok:
        say(preflight_text(report))
    else:
        say(f"{last_line(report)}{'; `pai-install preflight` shows them' if report.warnings else ''}")


def _agreed(prepared: Prepared) -> bool:
    """Asks whether to go on, where there is anything to do. Raises KeyboardInterrupt on Ctrl-C."""
    plan, refused = prepared.plan, prepared.refused
    hosts = [host for host in plan.hosts if host not in refused]
    if not hosts:
        return True
    without = f", leaving out {', '.join(refused)}" if refused else ""
    try:
        return click.confirm(f"run {len(plan.phases)} phases on {len(hosts)} machines{without}?", err=True)
    except click.Abort as stop:  # click's word for Ctrl-C and for the end of the input
        if isinstance(stop.__context__, EOFError):
            return False
        raise KeyboardInterrupt from None


def _show(outcome: Outcome, session: Session, *, as_json: bool, check: bool) -> None:
    if as_json:
        click.echo(json.dumps(report_data(outcome), indent=2))
        return
    show_outcome(outcome, sys.stdout)
    if not check:
        click.echo(f"report: {session.run.report('html')}")
