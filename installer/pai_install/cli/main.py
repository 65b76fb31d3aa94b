"""The entry of every verb: loads only the verb that was asked for, maps errors to exit codes."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import click

from pai_install import __version__
from pai_install.cli import failure
from pai_install.cli.options import group_site_option
from pai_install.cli.output import echo
from pai_install.cli.verbs import VERBS, Verbs
from pai_install.errors import ExitCode, PaiError
from pai_install.run.signals import ended
from pai_install.system.error_log import write_error_log
from pai_install.system.output import forget, lost, output_may_be_lost
from pai_install.system.refusals import refused_by_box

# pydantic would look for plugins in the metadata of every installed package, at each start
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

# Modules and sites stay until the end, so Python searches them for unreachable objects less often than by default
_COLLECTIONS = (50_000, 20, 20)

if TYPE_CHECKING:  # `--help` loads no more than it needs
    from pai_install.run.environment import Environment


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="pai-install")
@click.option("--debug", is_flag=True, help="Show tracebacks. Also accepted after the verb.")
@group_site_option
def cli(*, debug: bool) -> None:
    """Install and operate a shared GPU training cluster.

    A site is a folder with layout.yaml, config.yaml, and optionally services-configuration.yaml.
    """
    del debug  # taken out of argv by run(): it must also work behind the verb and when parsing fails


def run(argv: Sequence[str], environment: Environment | None = None) -> int:
    """Runs one command line and returns its exit code. Never raises, never exits.

    environment: of the commands, by default the product's own.
    """
    words = _without_debug(argv)
    try:
        result = cli.main(args=words, prog_name="pai-install", standalone_mode=False, obj=environment)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except BrokenPipeError:  # `pai-install ... | head`
        forget(sys.stdout)
        return ExitCode.OK
    except (Exception, KeyboardInterrupt) as error:
        with output_may_be_lost():
            return _report(error, words, debug=len(words) < len(argv))
    return result if isinstance(result, int) else ExitCode.OK


def _report(error: BaseException, words: Sequence[str], *, debug: bool) -> int:  # noqa: PLR0911 - one per kind of ending
    """Says how a verb ended and gives the exit code."""
    match error:
        case click.Abort() if not isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            echo("aborted: not confirmed", err=True)
            return ExitCode.INTERRUPTED
        case click.ClickException():
            error.show()
            if hint := _usage_hint(error):
                echo(hint, err=True)
            if _as_json(words):
                failure.show_document(PaiError(error.format_message(), code="usage", exit_code=ExitCode.USAGE))
            return ExitCode.USAGE
        case click.Abort() | KeyboardInterrupt():  # click makes the one of the other
            echo("\ninterrupted. Run the same command again to continue", err=True)
            return ExitCode.INTERRUPTED
        case PaiError():
            failure.show(error, as_json=_as_json(words), debug=debug)
            return error.exit_code
        case OSError() if lost(error):  # the terminal was closed: no reader is left
            return ExitCode.INTERRUPTED
        # A full disk or a missing permission is no bug, and has a remedy.
        case OSError() if (refused := refused_by_box(error)) is not None:
            failure.show(refused, as_json=_as_json(words), debug=debug)
            return refused.exit_code
        case _:
            _show_bug(error, words, debug=debug)
            return ExitCode.INTERNAL


def _usage_hint(error: click.ClickException) -> str:
    """Returns a hint for a site folder without --site, or ""."""
    context = getattr(error, "ctx", None)
    if context is None or "unexpected extra argument" not in error.message:
        return ""
    has_site = any(parameter.name == "site_dir" for parameter in context.command.params)
    return "Name the folder of the site with --site FOLDER." if has_site else ""


def _without_debug(argv: Sequence[str]) -> list[str]:
    """Returns the words without --debug, which may be anywhere among our own words."""
    # Words after these belong to another program, which may have a --debug of its own.
    ends = [argv.index(word) for word in ("--", "kubectl") if word in argv]
    end = min(ends, default=len(argv))
    return [*(word for word in argv[:end] if word != "--debug"), *argv[end:]]


def _verb(words: Sequence[str]) -> str:
    """Returns the command of a command line, skipping the value of a --site before it."""
    return next((word for before, word in pairwise(("", *words)) if word in VERBS and before != "--site"), "")


def _as_json(words: Sequence[str]) -> bool:
    verb = _verb(words)
    return bool(verb) and failure.wants_json(words, cli.get_command(click.Context(cli), verb))


def _show_bug(error: BaseException, words: Sequence[str], *, debug: bool) -> None:
    message = f"internal error: {type(error).__name__}: {error} (details in {write_error_log(error, _verb(words))})"
    echo(message, err=True)
    if _as_json(words):
        failure.show_document(PaiError(message, code="internal-error", exit_code=ExitCode.INTERNAL))
    if debug:
        traceback.print_exception(error)


def main(environment: Environment | None = None) -> None:
    """Runs this process's command line and exits with its code."""
    gc.set_threshold(*_COLLECTIONS)
    code = run(sys.argv[1:], environment)
    ended()
    sys.exit(code)
