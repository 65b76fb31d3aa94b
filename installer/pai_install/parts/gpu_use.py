"""Records the GPU utilization of jobs: a service on machines with GPUs."""

from __future__ import annotations

from pai_install.parts.context import Context
from pai_install.parts.part import Part, RoleVariables
from pai_install.site import Machine, Site
from pai_install.site.groups import groups_of
from pai_install.site.schedulers import scheduler_of

# slices of GPUs (MIG) have other names, and no number that the driver shows
_GPUS = "nvidia.com/gpu"
METRICS = "/var/lib/pai-metrics/gpu.prom"


class GpuUseVariables(RoleVariables):
    """node_name: the machine's name in the cluster. metrics: text file, "" for none. expected: GPUs of the layout."""

    role = "gpu_use"
    node_name: str
    metrics: str
    expected: int


class GpuUse(Part):
    """The machines with NVIDIA GPUs, of a site that has jobs or monitoring."""

    name = "gpu_use"
    phase = "labels"
    model = GpuUseVariables
    after = ("control_plane", "worker")
    removable = True

    def variables(self, context: Context, machine: Machine) -> GpuUseVariables | None:
        """Returns None without GPUs with measurable utilization, or without jobs and monitoring."""
        site, sku = context.site, context.site.sku_of(machine)
        monitored = site.services.monitoring is not None
        if not (machine.worker and sku.has_nvidia and (has_jobs(site) or monitored)):
            return None
        metrics, expected = (METRICS, sku.resources.get(_GPUS, 0)) if monitored else ("", 0)
        return GpuUseVariables(node_name=machine.hostname, metrics=metrics, expected=expected)


def has_jobs(site: Site) -> bool:
    """Returns whether the site has groups with jobs of a batch scheduler."""
    return bool(groups_of(site.services) and scheduler_of(site))
