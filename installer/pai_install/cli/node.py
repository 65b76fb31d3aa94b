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
    """Add, remove, reboot and replace machines; take nodes out of scheduling and back."""


@command.command()
@site_option
@nodes_argument
@click.option("--hostip", metavar="ADDRESS", help="Its address: adds the machine to layout.yaml first.")
@click.option("--machine-type", metavar="NAME", help="Its machine type, a name in machine-sku.")
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
    """Let machines of layout.yaml join the cluster, as workers or, where layout.yaml says so, as control planes.

    For workers only these machines and the control planes are contacted: preflight, installation, join, the
    scheduler's capacity, and the proof of the new ones. One that fails is cleaned and named, and stops none of the
    others. A machine that was removed, or marked as absent, is cleaned first and joins again.
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
@click.option("--dead", is_flag=True, help="The machines will never answer: only the cluster is told.")
@click.option(
    "--wait",
    is_flag=False,
    flag_value=str(_WAIT_S),
    type=click.IntRange(0),
    metavar="[SECONDS]",
    help="Wait until jobs have ended, by custom up to a day.",
)
@click.option("--grace", type=click.IntRange(0), metavar="SECONDS", help="End jobs; so long they may save their work.")
@click.option("--timeout", type=click.IntRange(1), default=300, show_default=True, help="Seconds for each node's pods.")
@click.option("--force", is_flag=True, help="End jobs at once, and pods under a disruption budget.")
@click.option("--keep-in-layout", "keep", is_flag=True, help="Mark the machines as absent instead of removing them.")
@click.option("--with-data", "data", is_flag=True, help="Also remove images and other data from the machines.")
@click.option(
    "--yes",
    "agreed",
    is_flag=False,
    flag_value="",
    metavar="[NAME,...]",
    help="Do not ask; several machines, or a control plane, must be named: --yes=a,b.",
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
    """Take machines out of the cluster, clean them, and take them out of layout.yaml.

    Refused while jobs run there, unless one of --wait, --grace and --force says what is to become of them; and where a
    virtual cluster would be guaranteed more than is left. In this order: scheduler, pods, node, machine, layout. An
    interrupted run goes on with the same command. No machine is touched that is not named; several, or a control
    plane, have to be typed, or given with --yes=NAME,...

    A machine that will never answer is removed with --dead. Should it come back, it makes no node of the cluster;
    `node add` cleans it and adds it again.
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
@click.option("--hostip", metavar="ADDRESS", help="Its new address, for layout.yaml.")
@click.option("--machine-type", metavar="NAME", help="Its new machine type, for layout.yaml.")
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
    """Let another machine take the name of one that is gone.

    The old one leaves the cluster without being asked, and should it come back, it makes no node. What was
    remembered of its health and its host key goes with it. Then the new one joins, as with `node add`. A machine that
    is still a ready node is not replaced: power it off first.
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
    """Return NODEs to scheduling, whoever cordoned them."""
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
