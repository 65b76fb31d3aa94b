"""`pai-install status`: machines, cluster, drift and the last run at a glance."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import click

from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.tell import say, tell_unfinished
from pai_install.cli.options import format_option, site_option
from pai_install.health.cluster.conditions import versions
from pai_install.operations.install import Install, standing
from pai_install.operations.look import Look
from pai_install.report.console import progress
from pai_install.report.standing import LastRun, Standing, last_run_of, status_data, status_text
from pai_install.run.environment import Environment
from pai_install.run.journal import interrupted_run
from pai_install.run.lock import holder
from pai_install.run.pipeline import open_session, prepare
from pai_install.run.proof import read_proof
from pai_install.run.request import Request
from pai_install.run.state import StateFolder, state_of
from pai_install.site.load import load_site


@click.command
@site_option
@click.option("--offline", is_flag=True, help="Only what the dev box knows; ask no machine.")
@format_option
@pass_environment
def command(*, site_dir: Path, offline: bool, output_format: str, environment: Environment) -> int:
    """Show machines, cluster, what differs from the site, and the last run; changes nothing.

    Exit code 6 when a machine cannot be observed, 5 when one does not answer, 7 when the cluster is not well or
    not proven. While another run works on the site, only what the dev box knows is shown. Nothing is fetched: without
    the site's components on the dev box it does not look for what differs from the site.
    """
    found = status(site_dir, environment, offline=offline)
    if output_format == "json":
        click.echo(json.dumps(status_data(found), indent=2))
    else:
        click.echo(status_text(found), nl=False)
    return found.exit_code


def status(site_dir: Path, environment: Environment, *, offline: bool) -> Standing:
    """Collects everything; asks the machines unless `offline` or another run is at work."""
    site = load_site(site_dir).site
    state = state_of(site_dir)
    running = holder(state.path)
    last_run = _last_run(state)
    tell_unfinished(site)
    interrupted = None if running else interrupted_run(state.journal)
    present = {machine.hostname for machine in site.present_machines}
    unproven = {host: entry for host, entry in read_proof(state.proof).unproven.items() if host in present}
    known = Standing(
        site,
        last_run=last_run,
        running=str(running or ""),
        interrupted=interrupted.run if interrupted else "",
        continued_by=interrupted.operation if interrupted and interrupted.operation else "apply",
        unproven={host: entry.why for host, entry in unproven.items()},
        proof_failed=any(entry.failed for entry in unproven.values()),
    )
    if offline or running:
        return known
    compared = environment.stocked(site)
    request = Request(site_dir, Install() if compared else Look())
    with (
        progress(sys.stderr) as observer,
        open_session(request, environment, verb="status", progress=observer, say=say) as session,
    ):
        prepared = prepare(session, insist=False)
    return replace(
        known,
        plan=prepared.plan,
        findings=standing(site, prepared.observation),
        versions=versions(site, prepared.observation.machines),
        compared=compared,
        look=prepared.exit_code,
    )


def _last_run(state: StateFolder) -> LastRun | None:
    for report in state.reports():
        try:
            return last_run_of(report.parent.name, json.loads(report.read_text()))
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            say(f"ignored: {report} is damaged")
    return None
