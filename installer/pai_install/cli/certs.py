"""`pai-install certs`: expiry and renewal of certificates."""

from __future__ import annotations

import click

from pai_install.app.context import App, RunOptions
from pai_install.app.runs import show_certificates
from pai_install.cli.command import acting, reading
from pai_install.cli.options import group_site_option
from pai_install.cli.terminal import Terminal
from pai_install.operations.certs_renew import CertsRenew
from pai_install.report.certificates import certificates_text


@click.group
@group_site_option
def command() -> None:
    """Show or renew the cluster's certificates."""


@command.command()
@reading()
def show(*, app: App, terminal: Terminal) -> int:
    """Show every certificate of the cluster's machines and of this host, the next to expire first.

    Exit code 5 when a machine is unreachable, 7 when a certificate has expired.
    """
    report = show_certificates(app)
    terminal.show(report, certificates_text(report))
    return report.exit_code


@command.command()
@acting(CertsRenew)
def renew(*, app: App, run: RunOptions, request: CertsRenew) -> int:
    """Renew the certificates of the control planes, and the administrator's kubeconfig on this host.

    Control planes are renewed one by one. The first failure stops the command. Kubelets renew their own
    certificates, and `apply` renews those of the component store and the cache. Authorities are not renewed.
    """
    return app.exit_code(request, run)
