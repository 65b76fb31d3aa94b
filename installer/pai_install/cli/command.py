"""Decorators of verbs: options from a request, an open application, and the exit code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from pydantic import BaseModel

from pai_install.app.context import App, RunOptions
from pai_install.cli.options import (
    accept_new_option,
    force_check_option,
    format_option,
    site_option,
    text_only,
    yes_option,
)
from pai_install.cli.parameters import Decorator, checked, parameters, values_of
from pai_install.cli.terminal import Terminal
from pai_install.run.environment import Environment, ProductEnvironment
from pai_install.system.output import output_may_be_lost

check_option = click.option("--check", is_flag=True, help="Only show the changes, with file differences.")
plan_option = click.option(
    "--plan",
    "plan_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Continue only if the plan still matches this file (`plan --format json`, or plan.json of a run's folder).",
)


def acting(
    model: type[BaseModel] | None = None,
    *,
    joins: bool = False,
    several: bool = False,
    plans: bool = True,
    yes: Decorator = yes_option,
) -> Decorator:
    """For a verb that changes something: it gets `app`, `run` (RunOptions), and `request`, a `model`.

    joins: it lets new machines in, so it has --force-check and --accept-new. several: it may make several runs.
    plans: it has --plan, which one run can match. yes: its --yes, where that takes a value.
    """
    options: list[Decorator] = [yes, check_option, *((plan_option,) if plans else ())]
    if joins:
        options = [force_check_option, accept_new_option, *options]

    def finish(terminal: Terminal, code: int) -> None:
        terminal.show_runs(code, several=several)

    return _verb(model, options, _run_options, finish, enduring=True)


def reading(
    model: type[BaseModel] | None = None,
    *options: Decorator,
    enduring: bool = False,
    formats: Decorator = format_option,
) -> Decorator:
    """For a verb that only reads: it gets `app`, `terminal`, and `request`, a `model`.

    enduring: the work goes on when no one reads the output any longer. formats: its --format.
    """
    return _verb(model, options, lambda _words: {}, lambda _terminal, _code: None, enduring=enduring, formats=formats)


def checking(model: type[BaseModel] | None = None, *options: Decorator, passed: bool = False) -> Decorator:
    """For a verb that runs without a question: it gets `app` and `request`, a `model`.

    passed: it prints findings that pass, too.
    """

    def finish(terminal: Terminal, code: int) -> None:
        if passed:
            terminal.show_passed()
        terminal.show_runs(code, several=False)

    return _verb(model, options, lambda _words: {"yes": True}, finish, enduring=True)


def editing(model: type[BaseModel]) -> Decorator:
    """For a verb that edits the site's files: it gets `app` and `request`, a `model`. It has --yes."""
    return reading(model, yes_option, enduring=True, formats=text_only)


def environment_of(context: click.Context) -> Environment:
    """Returns the environment of the command line: the default, or the argument of `main.run`."""
    chosen = context.find_root().obj
    return chosen if isinstance(chosen, Environment) else ProductEnvironment()


def known_checks(forced: tuple[str, ...]) -> tuple[str, ...]:
    """The ids of --force-check. Raises PaiError for an unknown id."""
    if forced:
        from pai_install.checks.runner import require_known  # noqa: PLC0415 - the rules load only when needed
        from pai_install.preflight.catalogue import CATALOGUE  # noqa: PLC0415

        require_known(forced, CATALOGUE)
    return forced


def _run_options(words: dict[str, Any]) -> dict[str, Any]:
    """Takes the options of a run out of the words."""
    forced = known_checks(words.pop("forced", ()))
    return {
        "run": RunOptions(check=words.pop("check", False), plan_file=words.pop("plan_file", None), forced_checks=forced)
    }


def _inherit(words: dict[str, Any]) -> None:
    """Takes values that were given to a group before the subcommand, where the subcommand got none."""
    context = click.get_current_context()
    parent = context.parent
    if parent is None:
        return
    for name in words:
        own = context.get_parameter_source(name)
        if own is not ParameterSource.COMMANDLINE and (
            parent.get_parameter_source(name) is ParameterSource.COMMANDLINE
        ):
            words[name] = parent.params[name]


def _verb(
    model: type[BaseModel] | None,
    options: Sequence[Decorator],
    more: Callable[[dict[str, Any]], dict[str, Any]],
    finish: Callable[[Terminal, int], None],
    *,
    enduring: bool,
    formats: Decorator = format_option,
) -> Decorator:
    """Adds the options of the model, --site, and --format, and opens the application around the verb.

    enduring: the work goes on when no one reads the output any longer. formats: its --format.
    """

    def decorate(verb: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(verb)  # click reads the help and the verb's own options from it
        def gathered(*, site_dir: Path, output_format: str = "text", **words: Any) -> int:  # noqa: ANN401 - click's values
            _inherit(words)
            request = {"request": checked(model, values_of(model, words))} if model else {}
            given: dict[str, Any] = more(words)
            yes = given.pop("yes", words.pop("yes", False))
            terminal = Terminal(yes=yes is not False and yes is not None, output_format=output_format)
            if "agreed" in verb.__annotations__:
                words["agreed"] = yes
            if "terminal" in verb.__annotations__:
                words["terminal"] = terminal
            environment = environment_of(click.get_current_context())
            with ExitStack() as stack:
                if enduring:
                    # A closed terminal must not kill a run in the middle of a change.
                    stack.enter_context(output_may_be_lost())
                stack.enter_context(terminal)
                app = App(site_dir, environment, terminal, accept_new_host_keys=words.pop("accept_new", False))
                code = verb(app=stack.enter_context(app), **request, **given, **words)
                finish(terminal, code)
            return code

        command: Callable[..., int] = gathered
        fields = parameters(model) if model else []
        decorators: list[Decorator] = [site_option, *fields, *options, formats]
        # Decorators apply from the last to the first, and help lists options in the order of their application.
        for option in reversed(decorators):
            command = option(command)
        return command

    return decorate
