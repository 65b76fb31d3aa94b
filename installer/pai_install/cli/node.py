"""`pai-install node`: take nodes of the cluster out of scheduling and back."""

from __future__ import annotations

from pathlib import Path

import click

from pai_install.cli._shared.act import How, act, acting_options
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli.options import site_option
from pai_install.operations.node_cordon import NodeCordon
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
