"""`pai-install status`: machines, cluster, drift and the last run at a glance."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from pai_install.cli.apply import say
from pai_install.cli.options import format_option, site_option
from pai_install.cluster.conditions import versions
from pai_install.report.console import progress
from pai_install.report.standing import LastRun, Standing, last_run_of, status_data, status_text
from pai_install.run.journal import interrupted_run
from pai_install.run.lock import holder
from pai_install.run.pipeline import Request, open_session, prepare
from pai_install.run.state import StateFolder, state_of
from pai_install.run.wiring import Wiring, product_wiring, without_components


@click.command
@site_option
@click.option("--offline", is_flag=True, help="Only what this box knows; no machine is asked.")
@format_option
def command(*, site_dir: Path, offline: bool, output_format: str) -> int:
    """Show machines, cluster, what is not as the site says, and the last run; changes nothing.

    Exit code 6 when a machine cannot be looked at, 5 when one does not answer, 7 when the cluster is not well.
    While another run works on the site, only what this box knows is shown. Nothing is fetched: without the site's
    components on this box it does not look for what is not as the site says.
    """
    standing = status(Request(site_dir), product_wiring(), offline=offline)
    if output_format == "json":
        click.echo(json.dumps(status_data(standing), indent=2))
    else:
        click.echo(status_text(standing), nl=False)
    return standing.exit_code


def status(request: Request, wiring: Wiring, *, offline: bool) -> Standing:
    """Collects everything; asks the machines unless `offline` or another run is at work."""
    site = wiring.load(request.site_dir).site
    state = state_of(request.site_dir)
    running = holder(state.path)
    last_run = _last_run(state)
    interrupted = None if running else interrupted_run(state.journal)
    cut_off = interrupted.run if interrupted else ""
    if offline or running:
        return Standing(site, last_run=last_run, running=str(running or ""), interrupted=cut_off)
    compared = wiring.stocked(site)
    parts = wiring if compared else without_components(wiring)
    with (
        progress(sys.stderr) as observer,
        open_session(request, parts, verb="status", progress=observer, say=say) as session,
    ):
        prepared = prepare(session)
    seen = versions(site, prepared.observed)
    return Standing(
        site,
        prepared.plan,
        prepared.standing,
        last_run,
        interrupted=cut_off,
        versions=seen,
        compared=compared,
        look=prepared.exit_code,
    )


def _last_run(state: StateFolder) -> LastRun | None:
    for report in state.reports():
        try:
            return last_run_of(report.parent.name, json.loads(report.read_text()))
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            say(f"{report} is broken and passed over")
    return None
