"""`pai-install node`: add and remove machines, cordon and uncordon nodes."""

from __future__ import annotations

import click

from pai_install.app.context import App, RunOptions
from pai_install.app.nodes import AddNodes, RemoveNodes, ReplaceNode, add_nodes, remove_nodes, replace_node
from pai_install.cli.command import acting
from pai_install.cli.options import group_site_option
from pai_install.operations.node_cordon import NodeCordon
from pai_install.operations.node_drain import NodeDrain
from pai_install.operations.node_reboot import NodeReboot
from pai_install.operations.node_uncordon import NodeUncordon


@click.group
@group_site_option
def command() -> None:
    """Add, remove, replace, reboot, cordon, and drain nodes."""


@command.command()
@acting(AddNodes, joins=True)
def add(*, app: App, run: RunOptions, request: AddNodes) -> int:
    """Add machines of layout.yaml to the cluster.

    Runs preflight, installs the machines, joins them, updates the scheduler, and verifies them. For workers, only these
    machines and the control plane are contacted. A failed machine is cleaned and reported, and does not stop the
    others. Removed or absent machines are cleaned first and join again.
    """
    return add_nodes(app, request, run)


@command.command()
@acting(
    RemoveNodes,
    yes=click.option(
        "--yes",
        is_flag=False,
        flag_value="",
        metavar="[NAME,...]",
        help="Do not ask. Name several machines, or a control-plane node: --yes=a,b.",
    ),
)
def remove(*, app: App, run: RunOptions, request: RemoveNodes, agreed: str | None = None) -> int:
    """Remove nodes from the cluster, clean their machines, and edit layout.yaml.

    Rejected while jobs run there, unless you give --wait, --grace, or --force, and if a guarantee of a virtual cluster
    would exceed the remaining capacity. Only named machines are changed. To confirm several machines, or a
    control-plane node, type their names or give --yes=NAME,... Run the same command again to continue.

    Use --dead for a machine that never comes back. If it does, the cluster rejects it until `node add`.
    """
    return remove_nodes(app, request, run, agreed)


@command.command()
@acting(NodeReboot)
def reboot(*, app: App, run: RunOptions, request: NodeReboot) -> int:
    """Reboot workers, batch by batch.

    Each batch is drained, rebooted, checked, and returned to scheduling before the next batch begins. A batch with a
    missing or unhealthy node stops the command. Nodes that were cordoned before stay cordoned. Running jobs block the
    reboot, unless you give --force.
    """
    return app.exit_code(request, run)


@command.command()
@acting(ReplaceNode, joins=True, several=True, plans=False)
def replace(*, app: App, run: RunOptions, request: ReplaceNode) -> int:
    """Replace the machine behind a node name with new hardware.

    The old machine is not contacted. Its node, host key, and health history are deleted, and the cluster rejects it
    from then on. The new machine joins as with `node add`. Power off the old machine first: a ready node is not
    replaced.
    """
    return replace_node(app, request, run)


@command.command()
@acting(NodeCordon)
def cordon(*, app: App, run: RunOptions, request: NodeCordon) -> int:
    """Cordon NODEs: no new pods start there. Running pods stay.

    Cordoned nodes do not change. Only `node uncordon` returns the node to scheduling, not `health --act cordon`.
    """
    return app.exit_code(request, run)


@command.command()
@acting(NodeUncordon)
def uncordon(*, app: App, run: RunOptions, request: NodeUncordon) -> int:
    """Return NODEs to scheduling."""
    return app.exit_code(request, run)


@command.command()
@acting(NodeDrain)
def drain(*, app: App, run: RunOptions, request: NodeDrain) -> int:
    """Cordon NODEs and evict their pods.

    The plan names the jobs that stop, and the pods that a PodDisruptionBudget protects. Pods of DaemonSets stay. Pods
    without a controller stop the command, unless you give --force. If pods remain after the timeout, the node fails
    with exit code 6 and stays cordoned.
    """
    return app.exit_code(request, run)
