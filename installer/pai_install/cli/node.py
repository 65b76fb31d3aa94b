"""`pai-install node`: machines come and go; nodes leave scheduling and come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pai_install.app.context import App, RunOptions
from pai_install.cli._shared.act import How, SiteRequest, acting_options
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli.command import acting, check_option, known_checks, plan_option
from pai_install.cli.options import accept_new_option, force_check_option, format_option, group_site_option, site_option
from pai_install.operations.node_cordon import NodeCordon
from pai_install.operations.node_drain import NodeDrain
from pai_install.operations.node_reboot import NodeReboot
from pai_install.operations.node_uncordon import NodeUncordon
from pai_install.run.environment import Environment

_WAIT_S = 86400
nodes_argument = click.argument("nodes", nargs=-1, required=True, metavar="NODE...")


@click.group
@group_site_option
def command() -> None:
    """Add, remove, replace, reboot, cordon, and drain nodes."""


@command.command()
@site_option
@nodes_argument
@click.option("--hostip", metavar="ADDRESS", help="IP address. Adds the machine to layout.yaml first.")
@click.option("--machine-type", metavar="NAME", help="Machine type, a name in machine-sku.")
@force_check_option
@accept_new_option
@acting_options
@pass_environment
def add(
    *,
    site_dir: Path,
    nodes: tuple[str, ...],
    hostip: str | None,
    machine_type: str | None,
    forced: tuple[str, ...],
    accept_new: bool,
    how: How,
    environment: Environment,
) -> int:
    """Add machines of layout.yaml to the cluster.

    Runs preflight, installs the machines, joins them, updates the scheduler, and verifies them. For workers, only these
    machines and the control plane are contacted. A failed machine is cleaned and reported, and does not stop the
    others. Removed or absent machines are cleaned first and join again.
    """
    from pai_install.cli._shared.node_add import add as add_machines  # noqa: PLC0415 - help loads nothing of it

    if (hostip is None) != (machine_type is None):
        raise click.UsageError("--hostip and --machine-type go together")
    entry = {"hostip": hostip, "machine-type": machine_type} if hostip and machine_type else {}
    request = SiteRequest(site_dir, NodeCordon(nodes=nodes), accept_new, known_checks(forced))
    return add_machines(site_dir, nodes, entry, how, environment, request)


@command.command()
@site_option
@nodes_argument
@click.option("--dead", is_flag=True, help="Do not contact the machines.")
@click.option(
    "--wait",
    is_flag=False,
    flag_value=str(_WAIT_S),
    type=click.IntRange(0),
    metavar="[SECONDS]",
    help="Wait for running jobs.  [default: up to a day]",
)
@click.option("--grace", type=click.IntRange(0), metavar="SECONDS", help="Stop jobs with this grace period.")
@click.option(
    "--timeout",
    type=click.IntRange(1),
    default=300,
    show_default=True,
    help="Time limit of each node's drain, in seconds.",
)
@click.option("--force", is_flag=True, help="Stop jobs immediately, and delete pods under a disruption budget.")
@click.option("--keep-in-layout", "keep", is_flag=True, help="Mark the machines as absent instead of removing them.")
@click.option("--with-data", "data", is_flag=True, help="Also remove images and other data from the machines.")
@click.option(
    "--yes",
    "agreed",
    is_flag=False,
    flag_value="",
    metavar="[NAME,...]",
    help="Do not ask. Name several machines, or a control-plane node: --yes=a,b.",
)
@check_option
@plan_option
@format_option
@pass_environment
def remove(
    *,
    site_dir: Path,
    nodes: tuple[str, ...],
    agreed: str | None,
    check: bool,
    plan_file: Path | None,
    output_format: str,
    environment: Environment,
    **words: Any,  # noqa: ANN401
) -> int:
    """Remove nodes from the cluster, clean their machines, and edit layout.yaml.

    Rejected while jobs run there, unless you give --wait, --grace, or --force, and if a guarantee of a virtual cluster
    would exceed the remaining capacity. Only named machines are changed. To confirm several machines, or a
    control-plane node, type their names or give --yes=NAME,... Run the same command again to continue.

    Use --dead for a machine that never comes back. If it does, the cluster rejects it until `node add`.
    """
    from pai_install.cli._shared.node_remove import Leaving  # noqa: PLC0415 - help loads nothing of it
    from pai_install.cli._shared.node_remove import remove as remove_machines  # noqa: PLC0415

    how = How(agreed is not None, check, plan_file, output_format == "json")
    return remove_machines(site_dir, nodes, Leaving(**words), how, environment, agreed)


@command.command()
@acting(NodeReboot)
def reboot(*, app: App, run: RunOptions, request: NodeReboot) -> int:
    """Reboot workers, batch by batch.

    Each batch is drained, rebooted, checked, and returned to scheduling before the next batch begins. The first batch
    with a missing or unhealthy node is the last. Nodes that were cordoned before stay cordoned. Refused while jobs run,
    unless you give --force.
    """
    return app.exit_code(request, run)


@command.command("replace")
@site_option
@click.argument("node")
@click.option("--hostip", metavar="ADDRESS", help="New IP address for layout.yaml.")
@click.option("--machine-type", metavar="NAME", help="New machine type for layout.yaml.")
@force_check_option
@accept_new_option
@acting_options
@pass_environment
def replace_node(
    *,
    site_dir: Path,
    node: str,
    hostip: str | None,
    machine_type: str | None,
    forced: tuple[str, ...],
    accept_new: bool,
    how: How,
    environment: Environment,
) -> int:
    """Replace the machine behind a node name with new hardware.

    The old machine is not contacted. Its node, host key, and health history are deleted, and the cluster rejects it
    from then on. The new machine joins as with `node add`. Power off the old machine first: a ready node is not
    replaced.
    """
    from pai_install.cli._shared.node_replace import replace_machine  # noqa: PLC0415 - help loads nothing of it

    given = {"hostip": hostip, "machine-type": machine_type}
    entry = {key: value for key, value in given.items() if value}
    request = SiteRequest(site_dir, NodeCordon(nodes=(node,)), accept_new, known_checks(forced))
    return replace_machine(site_dir, node, entry, how, environment, request)


@command.command()
@acting(NodeCordon)
def cordon(*, app: App, run: RunOptions, request: NodeCordon) -> int:
    """Cordon NODEs: no new pods start there. Running pods stay.

    A cordoned node is left as it is. `node uncordon` returns it to scheduling. `health --act cordon` does not.
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
    without a controller are refused unless you give --force. If pods remain after the timeout, the node fails with exit
    code 6 and stays cordoned.
    """
    return app.exit_code(request, run)
