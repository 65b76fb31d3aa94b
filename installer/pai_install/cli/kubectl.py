"""`pai-install kubectl`: kubectl of the cluster's own version, with the site's kubeconfig."""

from __future__ import annotations

import os
from pathlib import Path

import click

from pai_install.apply.state import open_state
from pai_install.apply.wiring import site_components
from pai_install.cli.options import site_option
from pai_install.errors import ExitCode, PaiError
from pai_install.site import load_site


@click.command(context_settings={"ignore_unknown_options": True})
@site_option
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(*, site_dir: Path, words: tuple[str, ...]) -> int:
    """Run kubectl on the site's cluster: pai-install kubectl -- get nodes."""
    kubeconfig = open_state(site_dir).path / "kubeconfig"
    if not kubeconfig.is_file():
        raise PaiError(
            f"{kubeconfig} is missing: the site has no cluster yet",
            remedy=f"pai-install apply --site {site_dir}",
            exit_code=ExitCode.USAGE,
        )
    kubectl = site_components(load_site(site_dir).site, lambda line: click.echo(line, err=True)).file("kubectl").path
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    os.execve(kubectl, ["kubectl", *words], environment)  # noqa: S606 - kubectl takes this process's place
