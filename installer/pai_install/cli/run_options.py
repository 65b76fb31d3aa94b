"""The options that select a run: the same for `apply` and `plan`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import click

from pai_install.cli.options import (
    accept_new_option,
    force_check_option,
    limit_option,
    names,
    site_option,
)
from pai_install.errors import PaiError
from pai_install.operations.install import Install
from pai_install.plan.phases import PHASE_NAMES, require_phases
from pai_install.run.request import Request


def _phases(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    chosen = names(context, parameter, values)
    try:
        require_phases(chosen)
    except PaiError as error:
        raise click.BadParameter(f"{error.message}; {error.remedy}.", ctx=context, param=parameter) from error
    return chosen


phase_option = click.option(
    "--phase",
    "phases",
    multiple=True,
    callback=_phases,
    metavar="NAME,...",
    help=f"Only these phases, of {', '.join(PHASE_NAMES)}.",
)


no_verify_option = click.option(
    "--no-verify",
    is_flag=True,
    help="Leave out the proof at the end, where more changes follow at once; the next run without it makes it.",
)


def run_options(verb: Callable[..., int]) -> Callable[..., int]:
    """Adds the options to a verb and gives it their values as one `request`.

    The verb raises PaiError when --force-check names what is no check.
    """

    @functools.wraps(verb)  # with the options that the verb has of its own
    def gathered(
        *,
        site_dir: Path,
        limit: tuple[str, ...],
        phases: tuple[str, ...],
        no_verify: bool,
        forced: tuple[str, ...],
        accept_new: bool,
        **others: object,
    ) -> int:
        install = Install(phases=phases, limit=limit, verify=not no_verify)
        return verb(request=Request(site_dir, install, accept_new, known_checks(forced)), **others)

    options = (site_option, limit_option, phase_option, no_verify_option, force_check_option, accept_new_option)
    command: Callable[..., int] = gathered
    for option in reversed(options):
        command = option(command)
    return command


def known_checks(forced: tuple[str, ...]) -> tuple[str, ...]:
    """The ids of --force-check. Raises PaiError for one that is no check."""
    if forced:
        from pai_install.checks.runner import require_known  # noqa: PLC0415 - the rules load only when needed
        from pai_install.preflight.catalogue import CATALOGUE  # noqa: PLC0415

        require_known(forced, CATALOGUE)
    return forced
