"""A worker node."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from pai_install.parts.context import Context
from pai_install.parts.part import Part, RoleVariables, restarts
from pai_install.site import Machine, Site


class WorkerVariables(RoleVariables):
    """leader: the control plane that makes the join token.

    kubelet_config: no variable of the role, which reads it from the cluster, where the control planes wrote it.
    """

    role = "worker"
    node_name: str
    endpoint: str
    leader: str
    kubelet_config: Annotated[dict[str, Any], restarts("kubelet.service")] = Field(exclude=True)

    def settings(self) -> dict[str, Any]:
        """Returns the settings, including values that the role reads from the cluster."""
        return {**self.variables(), f"{self.role}_kubelet_config": self.kubelet_config}


class Worker(Part):
    """Workers that are not control planes."""

    name = "worker"
    phase = "workers"
    model = WorkerVariables
    after = ("control_plane",)

    def applies(self, site: Site, machine: Machine) -> bool:
        """Returns whether the machine joins as a worker."""
        del site
        return machine.worker and not machine.control_plane

    def variables(self, context: Context, machine: Machine) -> WorkerVariables:
        """Returns the variables of a join."""
        return WorkerVariables(
            node_name=machine.hostname,
            endpoint=context.endpoint,
            leader=context.leader.hostname,
            kubelet_config=dict(context.site.settings.kubelet_config),
        )
