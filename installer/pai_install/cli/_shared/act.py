"""Bridge to the application layer for verbs that are not use cases yet."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pai_install.app.context import App, RunOptions
from pai_install.cli.command import check_option, plan_option
from pai_install.cli.options import format_option, yes_option
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode
from pai_install.operations.operation import Operation
from pai_install.report.model import Outcome
from pai_install.run.environment import Environment
from pai_install.system.output import output_may_be_lost


@dataclass(frozen=True, slots=True)
class SiteRequest:
    """An operation on a site."""

    site_dir: Path
    operation: Operation
    accept_new_host_keys: bool = False
    forced_checks: tuple[str, ...] = ()
    services: str | None = None
    layout: str | None = None


@dataclass(frozen=True, slots=True)
class How:
    """How to act. yes: do not ask. check: only show. plan_file: continue only if the plan matches this file."""

    yes: bool = False
    check: bool = False
    plan_file: Path | None = None
    as_json: bool = False
    goes_on: bool = False


def acting_options(verb: Callable[..., int]) -> Callable[..., int]:
    """Adds --yes, --check, --plan and --format to a verb and gives it their values as one `how`."""

    @functools.wraps(verb)  # with the options that the verb has of its own
    def gathered(*, yes: bool, check: bool, plan_file: Path | None, output_format: str, **others: object) -> int:
        return verb(how=How(yes, check, plan_file, output_format == "json"), **others)

    command: Callable[..., int] = gathered
    for option in reversed((yes_option, check_option, plan_option, format_option)):
        command = option(command)
    return command


def act(request: SiteRequest, environment: Environment, how: How) -> int:
    """Runs the operation and returns the exit code. Raises PaiError where it cannot ask for confirmation."""
    outcome = outcome_of(request, environment, how)
    return ExitCode.PREFLIGHT_FAILED if outcome is None else outcome.exit_code


def outcome_of(request: SiteRequest, environment: Environment, how: How, *, quiet: bool = False) -> Outcome | None:
    """As `act`, with the outcome itself; None where the user did not agree. quiet: it is not shown here."""
    options = RunOptions(
        check=how.check,
        plan_file=how.plan_file,
        forced_checks=request.forced_checks,
        services=request.services,
        layout=request.layout,
    )
    terminal = Terminal(yes=how.yes, as_json=how.as_json)
    accept_new = request.accept_new_host_keys
    with (
        output_may_be_lost(),
        terminal,
        App(request.site_dir, environment, terminal, accept_new_host_keys=accept_new) as app,
    ):
        if how.goes_on:
            app.announced = True
        outcome = app.run(request.operation, options, shown=not quiet)
        if outcome is not None:
            terminal.show_runs(outcome.exit_code, several=False)
        return outcome


def require_answer(how: How) -> None:
    """Raises PaiError where the user would have to be asked and cannot be."""
    if not (how.yes or how.check):
        require_terminal()


def require_terminal() -> None:
    """Raises PaiError where no one can be asked."""
    Terminal().require_answers()
