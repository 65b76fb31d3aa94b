"""`pai-install alerts list|silence|test`: firing alerts, and notifications."""

from __future__ import annotations

import click

from pai_install.app.alerts import SilenceNode, list_alerts, send_test_alert, silence_node
from pai_install.app.context import App
from pai_install.cli.command import reading
from pai_install.cli.options import group_site_option
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode
from pai_install.report.alerts import AlertsReport, alerts_text


@click.group
@group_site_option
def command() -> None:
    """List firing alerts, silence a node, and test notifications."""


@command.command("list")
@reading()
def list_(*, app: App, terminal: Terminal) -> int:
    """List firing alerts with their actions, the gravest first.

    Silenced alerts, and alerts of nodes that are down or in maintenance, are left out.
    """
    found = list_alerts(app)
    terminal.show(AlertsReport(alerts=found), alerts_text(found))
    return ExitCode.OK


@command.command()
@reading(SilenceNode)
def silence(*, app: App, terminal: Terminal, request: SilenceNode) -> int:
    """Silence all alerts of a node for some hours."""
    made = silence_node(app, request)
    where = ", ".join(f"silence {silence} on {host}" for host, silence in made.silences.items())
    terminal.show(made, f"silenced {made.node} for {made.hours:g} hours ({where})\n")
    return ExitCode.OK


@command.command("test")
@reading()
def test(*, app: App, terminal: Terminal) -> int:
    """Send an alert to all receivers. It resolves after five minutes."""
    sent = send_test_alert(app)
    terminal.show(sent, "sent the alert PaiTestAlert to Alertmanager; receivers get it within a minute\n")
    return ExitCode.OK
