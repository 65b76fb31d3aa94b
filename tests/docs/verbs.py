"""The command line, as click knows it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from pai_install.cli.main import cli
from pai_install.cli.verbs import VERBS
from tests.docs.markdown import page, table

PROGRAM = "pai-install"


def cli_page() -> str:
    """docs/reference/cli.md."""
    return page("Command line", _lines())


def _lines() -> Iterator[str]:
    yield f"`{PROGRAM} VERB [OPTIONS]`; `-h` or `--help` after any verb; `--debug` before it shows tracebacks."
    yield "What a verb returns: [exit codes](exit-codes.md)."
    yield ""
    yield from table(("Verb", ""), ((f"[`{verb}`](#{verb})", line) for verb, line in VERBS.items()))
    context = click.Context(cli, info_name=PROGRAM, **cli.context_settings)
    for verb in VERBS:
        command = cli.get_command(context, verb)
        assert command is not None
        yield from _command(command, click.Context(command, info_name=verb, parent=context), level=2)


def _command(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    yield ""
    yield f"{'#' * level} {context.command_path.removeprefix(PROGRAM).strip()}"
    yield ""
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"    {context.command_path} {usage}"
    yield ""
    yield from _help(command)
    yield ""
    options = [record for option in command.get_params(context) if (record := option.get_help_record(context))]
    rows = [(f"`{words}`", text) for words, text in options if text and not words.endswith("--help")]
    if rows:
        yield from table(("Option", ""), rows)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _command(found, click.Context(found, info_name=name, parent=context), level + 1)


def _help(command: click.Command) -> Iterator[str]:
    text = inspect.cleandoc(command.help or "").partition("\f")[0]
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text)):
        yield from [""] if number else []
        kept = paragraph.startswith("\b\n")
        yield from ((f"    {line}" for line in paragraph.splitlines()[1:]) if kept else paragraph.splitlines())
