"""The one way to print: whatever a text contains, it steers no terminal. tests/contract/test_output.py holds this."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.system.files import write_atomic
from pai_install.system.plain import plain_text


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Prints a text on stdout, or on stderr. Characters that steer a terminal appear as their numbers."""
    click.echo(plain_text(text), err=err, nl=nl)


def prompt(text: str) -> str:
    """Asks on stderr. Returns the answer, "" for none."""
    return str(click.prompt(plain_text(text), default="", show_default=False, err=True))


def confirm(question: str, *, abort: bool = False) -> bool:
    """Asks for yes or no on stderr. abort: raises click.Abort for a no."""
    return click.confirm(plain_text(question), abort=abort, err=True)


def echo_in_place(text: str) -> None:
    """Replaces the current line of a terminal, on stderr."""
    click.echo(f"\r\x1b[K{plain_text(text)}", nl=False, err=True)


def echo_log(text: str) -> None:
    """Prints a part of a log. The use case has escaped it, unless the user asked for all of it with --raw."""
    click.echo(text, nl=False, color=True)  # click would remove colours that --raw asks for


def write_report(content: str, out: Path | None) -> None:
    """Writes a report to a file, or prints it."""
    if out is not None:
        write_atomic(out, content)
    else:
        echo(content, nl=False)
