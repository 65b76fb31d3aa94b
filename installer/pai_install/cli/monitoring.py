"""`pai-install monitoring export`: files for a monitoring of the site's own."""

from __future__ import annotations

import click

from pai_install.app.context import App
from pai_install.app.monitoring import ExportMonitoring, export_monitoring
from pai_install.cli.command import reading
from pai_install.cli.options import group_site_option, text_only
from pai_install.cli.output import echo
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode


@click.group
@group_site_option
def command() -> None:
    """Export scrapes, rules, and dashboards for your own monitoring."""


@command.command()
@reading(ExportMonitoring, formats=text_only)
def export(*, app: App, terminal: Terminal, request: ExportMonitoring) -> int:
    """Write files for your own Prometheus, Alertmanager, and Grafana.

    The folder gets the configuration of a Prometheus outside of the cluster, objects of the Prometheus operator, and
    dashboards of Grafana. Nothing is applied. Certificates, keys, and passwords are readable by their owner only.
    """
    del terminal
    written = export_monitoring(app, request)
    for path in written.files:
        echo(f"{written.folder / path}{' (readable by its owner only)' if path in written.secret else ''}")
    return ExitCode.OK
