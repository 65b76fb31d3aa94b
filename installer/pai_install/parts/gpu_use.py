"""Records the GPU utilization of jobs: a service on machines with GPUs."""

from __future__ import annotations

from pai_install.parts.context import Context
from pai_install.parts.part import Part, RoleVariables
from pai_install.site import Machine, Site
from pai_install.site.groups import groups_of
from pai_install.site.schedulers import scheduler_of


class GpuUseVariables(RoleVariables):
    """node_name: the machine's name in the cluster."""

    role = "gpu_use"
    node_name: str


class GpuUse(Part):
    """The machines with NVIDIA GPUs, of a site that has jobs."""

    name = "gpu_use"
    phase = "labels"
    model = GpuUseVariables
    after = ("control_plane", "worker")
    removable = True

    def variables(self, context: Context, machine: Machine) -> GpuUseVariables | None:
        """Returns None without GPUs with measurable utilization, or without jobs that could use them."""
        site = context.site
        if not (machine.worker and site.sku_of(machine).has_nvidia and has_jobs(site)):
            return None
        return GpuUseVariables(node_name=machine.hostname)


def has_jobs(site: Site) -> bool:
    """Returns whether the site has groups with jobs of a batch scheduler."""
    return bool(groups_of(site.services) and scheduler_of(site))
