"""`pai-install storage`: storages that jobs mount, their grants, and the pods that use them."""

from __future__ import annotations

import click

from pai_install.app.context import App
from pai_install.cli.command import reading
from pai_install.cli.lazy import LazyGroup
from pai_install.cli.options import group_site_option
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode
from pai_install.report.storages import storages_report, storages_text

_VERBS = ("show", "grant", "revoke", "add", "remove", "rotate", "test")


@click.group("storage", cls=LazyGroup, later=dict.fromkeys(_VERBS, "storage_verbs"))
@group_site_option
def command() -> None:
    """Define, grant, test, and rotate storages for jobs."""


@command.command(name="list")
@reading()
def list_command(*, app: App, terminal: Terminal) -> int:
    """List the storages of the site and their groups. Reads the site only."""
    report = storages_report(app.site)
    terminal.show(report, storages_text(report))
    return ExitCode.OK
