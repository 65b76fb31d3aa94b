"""`pai-install backup`: what a cluster cannot make again, in one file."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.cli._shared.act import How, act
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli.options import format_option, site_option
from pai_install.operations.backup import Backup
from pai_install.run.environment import Environment
from pai_install.run.request import Request


@click.command
@site_option
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@click.option(
    "--snapshot",
    metavar="NAME",
    default="",
    help="A snapshot that the timer kept on the control plane, e.g. etcd-20270131T000000Z.db, instead of a new one.",
)
@format_option
@pass_environment
def command(*, site_dir: Path, file: Path | None, snapshot: str, output_format: str, environment: Environment) -> int:
    """Back up the cluster into FILE, which is readable by you alone: it holds every key of the cluster.

    A snapshot of etcd, verified by its hash, the authorities and keys of the control planes, the site's files, and what
    this dev box alone knows of the site. It changes nothing. Without FILE it is made in .pai/backups of the site: copy
    it to another machine. `restore FILE` puts it back.
    """
    how = How(yes=True, as_json=output_format == "json")
    return act(Request(site_dir, Backup(file=str(file) if file else "", snapshot=snapshot)), environment, how)
