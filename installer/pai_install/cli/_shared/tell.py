"""Messages of verbs beside their result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from pai_install.documents.problem import text_lines
from pai_install.preflight.report import last_line
from pai_install.preflight.report import text as preflight_text
from pai_install.run.pipeline import Prepared, Session
from pai_install.site.model import Site
from pai_install.site.rules.pending import pending
from pai_install.storage.rotation import left_to_do


def say(line: str) -> None:
    """Tells the user something while the verb runs; stdout is for its result."""
    click.echo(line, err=True)


def tell_result(output_format: str, data: Mapping[str, Any], text: str) -> None:
    """Prints what a verb found out, in the format that was asked for. text: with its last line's end."""
    click.echo(f"{json.dumps(data, indent=2)}\n" if output_format == "json" else text, nl=False)


def tell_beginning(session: Session) -> None:
    """Says what is worth knowing first: the site's warnings, and what never ended."""
    for line in text_lines(session.loaded.problems):
        say(line)
    for line in pending(session.site):
        say(f"not yet: {line}")
    tell_unfinished(session.site)
    before = session.interrupted
    if before is not None:
        where = f" in phase {before.phase} ({', '.join(before.hosts)})" if before.phase else ""
        what = f"{before.run} ({before.operation})" if before.operation else before.run
        say(f"the run {what} was interrupted{where}; observing the machines again")


def tell_unfinished(site: Site) -> None:
    """Says which rotations of storages wait for something."""
    for name, rotation in site.rotations.items():
        if line := left_to_do(name, rotation):
            say(f"storage {name}: {line}")


def tell_preflight(prepared: Prepared) -> None:
    """Says what preflight found: all of it where a machine is refused, else one line."""
    report = prepared.preflight
    if report is None:
        return
    if not report.ok:
        say(preflight_text(report))
    else:
        say(f"{last_line(report)}{'; `pai-install preflight` shows them' if report.warnings else ''}")
