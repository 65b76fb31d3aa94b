"""`pai-install certs`: until when certificates are valid, and new ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from pai_install.checks.verdict import Verdict
from pai_install.cli._shared.act import How, act, acting_options
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli._shared.tell import say
from pai_install.cli.options import format_option, group_site_option, site_option
from pai_install.errors import ExitCode
from pai_install.operations.certs_renew import DEFAULT_WITHIN_DAYS, CertsRenew
from pai_install.operations.look import Look
from pai_install.operations.verify import certificates_of
from pai_install.report.certificates import certificates_data, certificates_text
from pai_install.report.console import progress
from pai_install.run.environment import Environment
from pai_install.run.pipeline import open_session, prepare
from pai_install.run.request import Request


@click.group
@group_site_option
def command() -> None:
    """Show until when the cluster's certificates are valid, and renew them."""


@command.command()
@site_option
@format_option
@pass_environment
def show(*, site_dir: Path, output_format: str, environment: Environment) -> int:
    """Show every certificate of the cluster's machines and of this dev box, those that end first at the top.

    Exit code 5 when a machine does not answer, 7 when a certificate has ended.
    """
    with (
        progress(sys.stderr) as observer,
        open_session(Request(site_dir, Look()), environment, verb="certs show", progress=observer, say=say) as session,
    ):
        prepared = prepare(session, insist=False)
    rows = certificates_of(session.site, prepared.observation)
    unreachable = tuple(prepared.plan.unreachable)
    if output_format == "json":
        click.echo(json.dumps(certificates_data(rows, unreachable), indent=2))
    else:
        click.echo(certificates_text(rows, unreachable), nl=False)
    if prepared.exit_code is ExitCode.OK and any(row.verdict is Verdict.FAIL for row in rows):
        return ExitCode.VERIFICATION_FAILED
    return prepared.exit_code


@command.command()
@site_option
@click.option(
    "--within",
    "within_days",
    type=click.IntRange(1, 36500),
    default=DEFAULT_WITHIN_DAYS,
    show_default=True,
    metavar="DAYS",
    help="Renew the certificates of a control plane where one of them ends within that many days.",
)
@acting_options
@pass_environment
def renew(*, site_dir: Path, within_days: int, how: How, environment: Environment) -> int:
    """Renew the certificates of the control planes, and the administrator's kubeconfig on this dev box.

    One control plane after the other, and none after one that failed: with several of them the API stays up. Those of
    kubelets renew themselves, those of store and cache are renewed by apply; authorities stay as they are.
    """
    return act(Request(site_dir, CertsRenew(within_days=within_days)), environment, how)
