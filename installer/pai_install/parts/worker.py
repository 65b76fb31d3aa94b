"""A worker node."""

from __future__ import annotations

from pai_install.parts.context import Context
from pai_install.parts.part import Part, RoleVariables
from pai_install.site import Machine, Site


class WorkerVariables(RoleVariables):
    """leader: the control plane that makes the join token."""

    role = "worker"
    node_name: str
    endpoint: str
    leader: str


class Worker(Part):
    """Workers that are not control planes."""

    name = "worker"
    phase = "workers"
    model = WorkerVariables
    after = ("control_plane",)

    def applies(self, site: Site, machine: Machine) -> bool:
        """Those that join as workers."""
        del site
        return machine.worker and not machine.control_plane

    def variables(self, context: Context, machine: Machine) -> WorkerVariables:
        """What a join needs."""
        leader = context.leader.hostname
        return WorkerVariables(node_name=machine.hostname, endpoint=context.endpoint, leader=leader)
