"""Replaces the cluster's data with a backup."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from pai_install.errors import ExitCode, PaiError
from pai_install.operations.install import Install
from pai_install.operations.operation import Operation
from pai_install.plan.leader import leader_of, with_leader
from pai_install.plan.model import HostStep, Plan, Playbook, Step
from pai_install.plan.observation import Observation
from pai_install.plan.phases import PHASE_NAMES
from pai_install.site.model import Site

RESTORE = "restore"
ON_MACHINE = "/var/lib/pai-install/restore-given/machine.tar"
# the control planes have to have what their programs stand on before
_BEFORE = PHASE_NAMES[: PHASE_NAMES.index("control-plane")]


class Restore(Operation):
    """Restarts etcd of one control-plane node from the backup. The others leave, and the next apply joins them again.

    It is not in OPERATIONS: the backup is read before it, and the installation continues after it.
    """

    name: ClassVar[str] = "restore"
    summary: ClassVar[str] = "Restore the cluster from a backup."
    configures: ClassVar[bool] = True
    machine: str = Field(exclude=True, description="What goes to the control plane, on the controller host.")
    cluster: str = Field(description="The id of the cluster in the backup.")
    created: str = Field(description="When the backup was made.")

    def watched(self, site: Site) -> tuple[str, ...]:
        """Returns the control-plane nodes. The following installation observes the others."""
        return tuple(machine.hostname for machine in site.control_planes)

    def plan(self, site: Site, observation: Observation) -> Plan:
        """Returns the missing parts of the control-plane nodes, then the restoration.

        Raises PaiError for an unreachable control-plane node, because it would continue to serve the old data.
        """
        planes = [machine.hostname for machine in site.control_planes]
        if silent := [name for name in planes if name not in observation.machines]:
            raise PaiError(
                f"cannot restore the cluster: {', '.join(silent)} is unreachable, and would serve its old data",
                code="restore-control-planes-silent",
                remedy=(
                    "restore the control-plane node, or mark it absent: true in layout.yaml after you switch it off"
                ),
                exit_code=ExitCode.UNREACHABLE,
            )
        leader = leader_of(site, observation.machines)
        plan = Install(limit=tuple(planes), verify=False).plan(site, observation)
        before = tuple(step for step in plan.steps if step.name in _BEFORE)
        hosts = tuple(HostStep(name, (self._reason(name, leader),), (self._effect(name, leader),)) for name in planes)
        variables = {"restore_leader": leader, "restore_on_box": self.machine, "restore_on_machine": ON_MACHINE}
        action = Playbook("restore.yml", variables)
        # without the one that gets the data, the others would lose theirs for nothing
        ready = tuple(step.name for step in before)
        step = Step(RESTORE, "Restore the cluster from the backup", hosts, action, after_all=ready)
        return Plan((*before, step), with_leader(observation.inventory, leader), observation.unreachable, leader)

    def typed(self, plan: Plan) -> str:
        """The cluster's id."""
        del plan
        return self.cluster

    def question(self, plan: Plan, hosts: tuple[str, ...]) -> str:
        """What is lost."""
        del plan, hosts
        return f"replace all objects of the cluster's API by those of {self.created}"

    def _reason(self, name: str, leader: str) -> str:
        return f"it gets the data of {self.created}" if name == leader else f"it joins {leader} again"

    def _effect(self, name: str, leader: str) -> str:
        stops = "stops API server, controller manager, scheduler and etcd"
        return f"{stops}, and starts them with other data" if name == leader else f"{stops}, and removes its data"
