"""Additional steps for the removal of a control-plane node, compared with a worker. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from pai_install.errors import ExitCode, PaiError
from pai_install.plan.model import HostStep, Playbook, Step
from pai_install.site.model import Machine, Site

CHECK, LEAVE = "etcd-check", "etcd-leave"
_PLAYBOOK = "etcd-leave.yml"


def removed_planes(machines: Sequence[Machine], site: Site) -> tuple[str, ...]:
    """Returns the machines that are control-plane nodes.

    site: without them. Raises PaiError if no control-plane node would remain.
    """
    planes = tuple(machine.hostname for machine in machines if machine.control_plane)
    if planes and not any(machine.hostname not in planes for machine in site.control_planes):
        raise PaiError(
            f"cannot remove {', '.join(planes)}: the cluster would have no control plane",
            code="last-control-plane",
            remedy="add another control-plane node first. To remove the whole cluster, run pai-install reset",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )
    return planes


def out_of_etcd(
    steps: Sequence[Step], machines: Sequence[Machine], leader: str, before: Collection[str]
) -> tuple[Step, ...]:
    """Returns the steps of a removal with those for etcd: nothing changes while etcd needs the members.

    machines: to remove. leader: the remaining control-plane node that removes them. before: steps that stop the
    machines, before which the members leave.
    """
    addresses = [machine.hostip for machine in machines if machine.control_plane]
    if not addresses:
        return tuple(steps)
    names = ", ".join(machine.hostname for machine in machines if machine.control_plane)
    host = HostStep(leader, (f"{names} leaves",), (f"{names} no longer counts for the quorum",))
    look = Playbook(_PLAYBOOK, {"etcd_leaving": addresses, "etcd_only_check": True})
    check = Step(CHECK, "Check the quorum of etcd", (replace(host, effects=()),), look, looks=True)
    removal = Playbook(_PLAYBOOK, {"etcd_leaving": addresses, "etcd_only_check": False})
    # whoever runs jobs there has moved by then; a member that is gone does not come back by itself
    leave = Step(LEAVE, "Remove the control planes from etcd", (host,), removal, needs=(CHECK,), looks=True)
    place = next((number for number, step in enumerate(steps) if step.name in before), len(steps))
    first = [replace(step, needs=(*step.needs, CHECK)) for step in steps[:place]]
    last = [replace(step, needs=(*step.needs, LEAVE)) for step in steps[place:]]
    return (check, *first, leave, *last)
