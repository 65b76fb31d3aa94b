"""`pai-install job template`: job files with parameters, kept in the cluster."""

from __future__ import annotations

from functools import partial

import click

from pai_install.app.context import App
from pai_install.app.job_templates import (
    ImportTemplates,
    ListTemplates,
    SaveTemplate,
    TemplateName,
    import_templates,
    list_templates,
    publish_template,
    remove_template,
    save_template,
    show_template,
)
from pai_install.cli.command import reading
from pai_install.cli.options import group_site_option, text_only
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode
from pai_install.report.job_templates import (
    import_report,
    import_text,
    template_report,
    template_text,
    templates_report,
    templates_text,
)


@click.group("template")
@group_site_option
def template() -> None:
    """Save job files with parameters in the cluster."""


@template.command(name="list")
@reading(ListTemplates)
def list_command(*, app: App, terminal: Terminal, request: ListTemplates) -> int:
    """List templates of groups, and published ones.

    The job files of examples/ are published templates. Templates that cannot run on the site are omitted.
    """
    found = list_templates(app, request)
    terminal.show(partial(templates_report, found), templates_text(found))
    return ExitCode.OK


@template.command
@reading(TemplateName)
def show(*, app: App, terminal: Terminal, request: TemplateName) -> int:
    """Show a template: its description, its parameters, and its file."""
    found = template_report(show_template(app, request))
    terminal.show(found, template_text(found))
    return ExitCode.OK


@template.command
@reading(SaveTemplate, formats=text_only)
def save(*, app: App, request: SaveTemplate) -> int:
    """Save a job file, or the file of a job, as a template of a group.

    Values below `parameters:` of an OpenPAI file are the parameters of the template. Secrets are masked. A template of
    the same owner is replaced.
    """
    found = save_template(app, request)
    app.notify(f"{found.name} is saved in {found.namespace}")
    return ExitCode.OK


@template.command
@reading(TemplateName, formats=text_only)
def publish(*, app: App, request: TemplateName) -> int:
    """Publish a template of a group to all groups.

    The published template is a copy. Publish it again after a change.
    """
    found = publish_template(app, request)
    app.notify(f"{found.name} is published")
    return ExitCode.OK


@template.command
@reading(TemplateName, formats=text_only)
def remove(*, app: App, request: TemplateName) -> int:
    """Remove a template. Jobs from it stay."""
    found = remove_template(app, request)
    app.notify(f"{found.name} is removed from {found.namespace}")
    return ExitCode.OK


@template.command(name="import")
@reading(ImportTemplates)
def import_command(*, app: App, terminal: Terminal, request: ImportTemplates) -> int:
    """Save job files, or items of OpenPAI's marketplace, as templates.

    A FILE is a job file, or the JSON of the marketplace's address `/api/items`. An item with an error is reported, and
    the others are saved. Exit code 3 when an item has an error.
    """
    found = import_templates(app, request)
    report = import_report(found)
    terminal.show(report, import_text(report))
    return ExitCode.SITE_INVALID if any(one.problem for one in found) else ExitCode.OK
