"""An error as the user sees it: lines on stderr, and with --format json a document on stdout."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator, Sequence
from itertools import pairwise

import click

from pai_install.cli.output import echo
from pai_install.errors import PaiError


def show(error: PaiError, *, as_json: bool, debug: bool) -> None:
    """Prints the error. `debug` adds the traceback."""
    echo(f"error: {error.message}", err=True)
    if error.details:
        echo("\n".join(f"  {line}" for line in error.details.splitlines()), err=True)
    if error.remedy:
        echo(f"  what to do: {error.remedy}", err=True)
    if error.code:
        echo(f"  code: {error.code}", err=True)
    if as_json:
        show_document(error)
    if debug:
        traceback.print_exception(error)


def show_document(error: PaiError) -> None:
    """Prints the document on stdout."""
    from pai_install.report.error import error_report  # noqa: PLC0415 - `--help` imports no pydantic

    echo(json.dumps(error_report(error).as_json(), indent=2))


def wants_json(argv: Sequence[str], command: click.Command | None) -> bool:
    """Returns whether a command line requests JSON from a command with that format. The last --format wins."""
    own = list(argv[: argv.index("--")] if "--" in argv else argv)
    forms = [word.partition("=")[2] for word in own if word.startswith("--format=")]
    forms += [after for word, after in pairwise(own) if word == "--format"]
    return "json" in forms[-1:] and command is not None and any(map(_offers_json, _with_subcommands(command)))


def _with_subcommands(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        context = click.Context(command)
        found = (command.get_command(context, name) for name in command.list_commands(context))
        yield from filter(None, found)


def _offers_json(command: click.Command) -> bool:
    return any(
        "--format" in option.opts and isinstance(option.type, click.Choice) and "json" in option.type.choices
        for option in command.params
    )
