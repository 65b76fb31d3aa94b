"""`pai-install node`: machines come and go; nodes leave scheduling and come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pai_install.cli._shared.act import How, act, acting_options, check_option, plan_option
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli.options import accept_new_option, force_check_option, format_option, group_site_option, site_option
from pai_install.cli.run_options import known_checks
from pai_install.operations.node_cordon import NodeCordon
from pai_install.operations.node_drain import NodeDrain
from pai_install.operations.node_uncordon import NodeUncordon
from pai_install.run.environment import Environment
from pai_install.run.request import Request

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
    request = Request(site_dir, NodeCordon(nodes=nodes), accept_new, known_checks(forced))
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
@site_option
@nodes_argument
@click.option("--max-unavailable", default="1", show_default=True, metavar="N|N%", help="So many at a time.")
@click.option("--grace", type=click.IntRange(0), metavar="SECONDS", help="Grace period of a pod.  [default: its own]")
@click.option("--timeout", type=click.IntRange(1), default=600, show_default=True, help="Seconds for each step.")
@click.option("--force", is_flag=True, help="End jobs, and pods under a disruption budget.")
@acting_options
@pass_environment
def reboot(*, site_dir: Path, nodes: tuple[str, ...], how: How, environment: Environment, **words: Any) -> int:  # noqa: ANN401
    """Reboot workers, batch by batch.

    Each batch is taken out of scheduling and emptied, rebooted, and its health is checked; then it is given back and
    the next one begins. The first batch with a machine that does not come back, or comes back unhealthy, is the last.
    Nodes that were out of scheduling before stay so. Refused while jobs run, without --force.
    """
    from pai_install.operations.node_reboot import NodeReboot  # noqa: PLC0415 - help loads nothing of it

    return act(Request(site_dir, NodeReboot(nodes=nodes, **words)), environment, how)


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
    request = Request(site_dir, NodeCordon(nodes=(node,)), accept_new, known_checks(forced))
    return replace_machine(site_dir, node, entry, how, environment, request)


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
