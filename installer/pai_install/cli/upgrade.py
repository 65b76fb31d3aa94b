"""`pai-install upgrade`: bring Kubernetes, runtimes and add-ons to other versions, machine after machine."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.cli._shared.act import How, act, acting_options
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli.options import site_option
from pai_install.operations.upgrade import Upgrade
from pai_install.run.environment import Environment
from pai_install.run.request import Request


@click.command
@site_option
@click.option(
    "--to", default="", metavar="VERSION", help="Kubernetes version, 1.36 or 1.36.3.  [default: config.yaml's]"
)
@click.option(
    "--max-unavailable",
    default="1",
    show_default=True,
    metavar="N|N%",
    help="How many workers are out of service at a time.",
)
@click.option("--grace", type=click.IntRange(0), help="Grace period of a pod in seconds.  [default: the pod's own]")
@click.option("--timeout", type=click.IntRange(1), default=600, show_default=True, help="Seconds for each node.")
@click.option(
    "--force",
    is_flag=True,
    help="Also remove pods without a controller or under a disruption budget; ignore APIs in use that go away.",
)
@acting_options
@pass_environment
def command(
    *,
    site_dir: Path,
    to: str,
    max_unavailable: str,
    grace: int | None,
    timeout: int,
    force: bool,
    how: How,
    environment: Environment,
) -> int:
    """Bring Kubernetes, container runtimes and add-ons to the versions of this pai-install.

    Control planes go first, one by one, after a snapshot of etcd; then workers in batches. Each machine is drained,
    changed, and must be well again before the next; the first bad batch is the last one. The same command continues
    an upgrade that was stopped. `apply` upgrades nothing: it keeps the versions that a site has.
    """
    operation = Upgrade(to=to, max_unavailable=max_unavailable, grace=grace, timeout=timeout, force=force)
    return act(Request(site_dir, operation), environment, how)
