"""`pai-install components list|fetch|status|bundle`: pinned third-party programs, and the cache of this host."""

from __future__ import annotations

from functools import partial

import click

from pai_install.app.components import (
    SelectComponents,
    WriteBundle,
    cache_status,
    catalogue_of,
    fetch_components,
    write_component_bundle,
)
from pai_install.app.context import App
from pai_install.cli.command import reading
from pai_install.cli.options import group_site_option, yes_option
from pai_install.cli.terminal import Terminal
from pai_install.components.report import bundle_text, cache_text, catalogue_report, catalogue_text, components_text
from pai_install.errors import ExitCode


@click.group
@group_site_option
def command() -> None:
    """List, fetch, and verify third-party programs."""


@command.command("list")
@reading()
@click.option("--needed", is_flag=True, help="Only components of the site: by its machines, settings, and add-ons.")
def list_(*, app: App, terminal: Terminal, needed: bool) -> int:
    """List every third-party program with its licence and pinned versions."""
    catalogue = catalogue_of(app, needed=needed)
    terminal.show(partial(catalogue_report, catalogue), catalogue_text(catalogue))
    return ExitCode.OK


@command.command("fetch")
@reading(SelectComponents, yes_option)
def fetch_(*, app: App, terminal: Terminal, request: SelectComponents) -> int:
    """Fetch the components of a site into the cache of this host, verified."""
    report = fetch_components(app, request)
    terminal.show(report, components_text(report))
    return ExitCode.OK


@command.command("status")
@reading(SelectComponents)
def status(*, app: App, terminal: Terminal, request: SelectComponents) -> int:
    """Show the components of a site in the cache. Exit code 4 when a component is missing."""
    report = cache_status(app, request)
    terminal.show(report, cache_text(report))
    return ExitCode.OK if report.ok else ExitCode.PREFLIGHT_FAILED


@command.command("bundle")
@reading(WriteBundle)
def bundle_(*, app: App, terminal: Terminal, request: WriteBundle) -> int:
    """Write the components of a site to the offline file TARGET, for component_source: bundle on another host."""
    report = write_component_bundle(app, request)
    terminal.show(report, bundle_text(report))
    return ExitCode.OK
