"""The rotation of a storage: test its new place, apply its generations to the cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field, InstanceOf

from pai_install.operations.operation import Operation
from pai_install.operations.storage_test import trial
from pai_install.operations.verify import proof
from pai_install.plan.model import Plan
from pai_install.plan.observation import Observation
from pai_install.plan.planner import make_plan
from pai_install.site.model import Site
from pai_install.storage.model import Grant

PHASE = "addons"


class StorageTry(Operation):
    """Every worker mounts a temporary grant of the new place. It is not in OPERATIONS, which have no grant."""

    name: ClassVar[str] = "storage rotate"
    summary: ClassVar[str] = "Test the new server of a storage on every worker."
    configures: ClassVar[bool] = True  # the image of the pods is known with the site's components
    grants: tuple[InstanceOf[Grant], ...] = Field(exclude=True)

    def watched(self, site: Site) -> tuple[str, ...]:
        """The control planes: one of them makes the pods."""
        return tuple(machine.hostname for machine in site.control_planes)

    def plan(self, site: Site, observation: Observation) -> Plan:
        """One step on a control plane."""
        return trial(site, observation, self.grants, site.workers)


class StorageRotate(Operation):
    """Applies only the add-ons, if the cluster differs from the site and the rotation."""

    name: ClassVar[str] = "storage rotate"
    summary: ClassVar[str] = "Apply one stage of a storage rotation. Data stay."
    configures: ClassVar[bool] = True
    storage: str = Field(description="The storage.")
    final: bool = Field(default=False, description="Also prove the control plane through which it was done.")

    def watched(self, site: Site) -> tuple[str, ...]:
        """The control planes: through one of them the add-ons are applied."""
        return tuple(machine.hostname for machine in site.control_planes)

    def plan(self, site: Site, observation: Observation) -> Plan:
        """Returns the work of the add-ons, and no other steps."""
        plan = make_plan(site, observation.inventory, observation.machines, unreachable=observation.unreachable)
        steps = tuple(step for step in plan.steps if step.name == PHASE)
        if self.final and (steps or plan.leader in observation.unproven):
            steps += proof(site, observation, "after a change", (plan.leader,))
        return replace(plan, steps=steps, nothing="the cluster has this stage already")
