"""`pai-install node`: take nodes of the cluster out of scheduling and back."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.cli._shared.act import How, act, acting_options
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli.options import site_option
from pai_install.operations.node_cordon import NodeCordon
from pai_install.operations.node_drain import NodeDrain
from pai_install.operations.node_uncordon import NodeUncordon
from pai_install.run.environment import Environment
from pai_install.run.request import Request

nodes_argument = click.argument("nodes", nargs=-1, required=True, metavar="NODE...")


@click.group
def command() -> None:
    """Take nodes of the cluster out of scheduling and back."""


@command.command()
@site_option
@nodes_argument
@acting_options
@pass_environment
def cordon(*, site_dir: Path, nodes: tuple[str, ...], how: How, environment: Environment) -> int:
    """Take NODEs out of scheduling: no new pods start there; those that run there stay.

    A node that is out already is left as it is. `node uncordon` takes it back; `health --act cordon` does not.
    """
    return act(Request(site_dir, NodeCordon(nodes=nodes)), environment, how)


@command.command()
@site_option
@nodes_argument
@acting_options
@pass_environment
def uncordon(*, site_dir: Path, nodes: tuple[str, ...], how: How, environment: Environment) -> int:
    """Put NODEs back into scheduling, whoever took them out."""
    return act(Request(site_dir, NodeUncordon(nodes=nodes)), environment, how)


@command.command()
@site_option
@nodes_argument
@click.option("--grace", type=click.IntRange(0), help="Grace period of a pod in seconds.  [default: the pod's own]")
@click.option("--timeout", type=click.IntRange(1), default=300, show_default=True, help="Seconds for each node.")
@click.option("--force", is_flag=True, help="Also remove pods without a controller or under a disruption budget.")
@acting_options
@pass_environment
def drain(
    *,
    site_dir: Path,
    nodes: tuple[str, ...],
    grace: int | None,
    timeout: int,
    force: bool,
    how: How,
    environment: Environment,
) -> int:
    """Take NODEs out of scheduling and move their pods away.

    The plan names what stops: jobs that run there, and pods that a PodDisruptionBudget does not let go. Pods of
    DaemonSets stay. Pods that nothing would start again are refused without --force. A node whose pods are still there
    after the timeout has failed, with exit code 6; it stays out of scheduling.
    """
    operation = NodeDrain(nodes=nodes, grace=grace, timeout=timeout, force=force)
    return act(Request(site_dir, operation), environment, how)
