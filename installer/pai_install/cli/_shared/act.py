"""Every verb that acts, from request to exit code: show the plan, ask, run it, report."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from pai_install.cli._shared.tell import say, tell_beginning, tell_preflight
from pai_install.cli.options import format_option, yes_option
from pai_install.errors import ExitCode, PaiError
from pai_install.report.console import progress, show_outcome
from pai_install.report.data import report_data
from pai_install.report.diffs import changes_text
from pai_install.report.model import Outcome
from pai_install.report.planned import plan_text
from pai_install.run.environment import Environment
from pai_install.run.pipeline import Prepared, Session, admit, open_session, perform, prepare, preview
from pai_install.run.request import Request
from pai_install.run.saved import SavedPlan, read_plan
from pai_install.run.signals import finishing
from pai_install.system.output import output_may_be_lost


@dataclass(frozen=True, slots=True)
class How:
    """How to act. yes: do not ask. check: only show. plan_file: continue only if the plan matches this file.

    goes_on: it is not the first run of its command, which has told what is worth knowing first.
    """

    yes: bool = False
    check: bool = False
    plan_file: Path | None = None
    as_json: bool = False
    goes_on: bool = False


check_option = click.option("--check", is_flag=True, help="Only show what would change, with file differences.")
plan_option = click.option(
    "--plan",
    "plan_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Continue only if the plan still matches this file (`plan --format json`, or plan.json of a run's folder).",
)


def acting_options(verb: Callable[..., int]) -> Callable[..., int]:
    """Adds --yes, --check, --plan and --format to a verb and gives it their values as one `how`."""

    @functools.wraps(verb)  # with the options that the verb has of its own
    def gathered(*, yes: bool, check: bool, plan_file: Path | None, output_format: str, **others: object) -> int:
        return verb(how=How(yes, check, plan_file, output_format == "json"), **others)

    command: Callable[..., int] = gathered
    for option in reversed((yes_option, check_option, plan_option, format_option)):
        command = option(command)
    return command


def act(request: Request, environment: Environment, how: How) -> int:
    """Runs the operation and returns the exit code. Raises PaiError where it cannot ask for confirmation."""
    outcome = outcome_of(request, environment, how)
    return ExitCode.PREFLIGHT_FAILED if outcome is None else outcome.exit_code


def outcome_of(request: Request, environment: Environment, how: How, *, quiet: bool = False) -> Outcome | None:
    """As `act`, with the outcome itself; None where the user did not agree. quiet: it is not shown here."""
    require_answer(how)
    saved = read_plan(how.plan_file) if how.plan_file is not None else None
    with (
        output_may_be_lost(),
        progress(sys.stderr) as observer,
        open_session(request, environment, progress=observer, say=say) as session,
    ):
        if not how.goes_on:
            tell_beginning(session)
        prepared = _prepare(session, saved, how)
        if how.check:
            outcome, changes = preview(session, prepared)
            click.echo(changes_text(changes), nl=False, err=how.as_json)
            say(f"plan: {session.run.plan}")
        elif how.yes or _agreed(session, prepared):
            outcome = perform(session, prepared)
        else:
            say("nothing was done")
            return None
        with finishing():
            if not quiet:
                _show(outcome, session, how)
        return outcome


def require_answer(how: How) -> None:
    """Raises PaiError where the user would have to be asked and cannot be."""
    if not (how.yes or how.check):
        require_terminal()


def require_terminal() -> None:
    """Raises PaiError where no one can be asked."""
    if not sys.stdin.isatty():
        raise PaiError(
            "cannot ask for confirmation: stdin is not a terminal", remedy="add --yes", exit_code=ExitCode.USAGE
        )


def _prepare(session: Session, saved: SavedPlan | None, how: How) -> Prepared:
    """Plans, shows the plan, and compares it with the saved one."""
    prepared = prepare(session)
    if saved is not None:
        saved.require_unmoved(prepared.plan)
    prepared = admit(session, prepared)
    tell_preflight(prepared)
    if not how.as_json:
        say(plan_text(prepared.plan))
    if saved is not None and saved.previewed:
        _require_same_changes(session, prepared, saved)
    return prepared


def _require_same_changes(session: Session, prepared: Prepared, saved: SavedPlan) -> None:
    """Previews the changes, and raises PaiError when the saved plan has others.

    Raises KeyboardInterrupt on Ctrl-C.
    """
    say("comparing what would change with the saved plan")
    outcome, changes = preview(session, prepared, log=False)
    if outcome.interrupted:
        raise KeyboardInterrupt
    saved.require_same(changes)


def _agreed(session: Session, prepared: Prepared) -> bool:
    """Asks for confirmation, where there is anything to do. Raises KeyboardInterrupt on Ctrl-C."""
    if not prepared.hosts:
        return True
    question = session.request.operation.question(prepared.plan, prepared.hosts)
    without = f", leaving out {', '.join(prepared.refused)}" if prepared.refused else ""
    word = session.request.operation.typed(prepared.plan)
    try:
        if word:
            return (
                str(click.prompt(f"{question}{without}: type {word}", default="", show_default=False, err=True)) == word
            )
        return click.confirm(f"{question}{without}?", err=True)
    except click.Abort as stop:  # click's word for Ctrl-C and for the end of the input
        if isinstance(stop.__context__, EOFError):
            return False
        raise KeyboardInterrupt from None


def _show(outcome: Outcome, session: Session, how: How) -> None:
    if how.as_json:
        click.echo(json.dumps(report_data(outcome), indent=2))
        return
    show_outcome(outcome, sys.stdout)
    if not how.check:
        click.echo(f"report: {session.run.report('html')}")
