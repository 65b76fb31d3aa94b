"""`pai-install kubectl`: kubectl of the cluster's own version, with the site's kubeconfig."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pai_install.app.kubectl import run_kubectl
from pai_install.cli.options import site_option


@click.command(context_settings={"ignore_unknown_options": True})
@site_option
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(*, site_dir: Path, words: tuple[str, ...]) -> int:
    """Run kubectl on the site's cluster: pai-install kubectl -- get nodes.

    kubectl uses the first reachable control-plane node. Without kubectl on this host, or without access to port 6443,
    it runs on a control-plane node over SSH and reads files there. Pass local files on standard input:
    kubectl -- apply -f - < FILE.
    """
    return run_kubectl(site_dir, words, terminal=sys.stdin.isatty() and sys.stdout.isatty())
