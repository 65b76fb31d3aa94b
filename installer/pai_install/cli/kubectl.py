"""`pai-install kubectl`: kubectl of the cluster's own version, with the site's kubeconfig."""

from __future__ import annotations

import os
import ssl
import urllib.request
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path

import click

from pai_install.cli.options import site_option
from pai_install.errors import ExitCode, PaiError
from pai_install.run.environment import site_components
from pai_install.run.state import state_of
from pai_install.site import load_site

API_PORT = 6443
PATIENCE_S = 2.0


@click.command(context_settings={"ignore_unknown_options": True})
@site_option
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(*, site_dir: Path, words: tuple[str, ...]) -> int:
    """Run kubectl on the site's cluster: pai-install kubectl -- get nodes.

    With several control planes, the first of them that answers is asked.
    """
    site = load_site(site_dir).site
    kubeconfig = state_of(site_dir).path / "kubeconfig"
    if not kubeconfig.is_file():
        raise PaiError(
            f"{kubeconfig} is missing: the site has no cluster yet",
            remedy=f"pai-install apply --site {site_dir}",
            exit_code=ExitCode.USAGE,
        )
    kubectl = site_components(site, lambda line: click.echo(line, err=True)).file("kubectl").path
    where = server_words([machine.hostip for machine in site.control_planes], ready)
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    os.execve(kubectl, ["kubectl", *where, *words], environment)  # noqa: S606 - kubectl takes this process's place


def server_words(addresses: Sequence[str], answers: Callable[[str], bool]) -> tuple[str, ...]:
    """What kubectl is told besides the kubeconfig: nothing for a single control plane, or where none answers.

    addresses: of the control planes, the preferred one first.
    """
    if len(addresses) < 2:
        return ()
    found = next((address for address in addresses if answers(address)), None)
    return (f"--server=https://{found}:{API_PORT}",) if found else ()


def ready(address: str) -> bool:
    """Whether the API server there says that it is ready: one that has just started takes connections before."""
    # No secret is sent, and kubectl checks the certificate of whom it then talks to.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(f"https://{address}:{API_PORT}/readyz", timeout=PATIENCE_S) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except OSError:
        return False
