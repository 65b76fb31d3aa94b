"""Labels and taints of nodes: the layout's, and those that say where NVIDIA GPUs are and which SKU a worker is."""

from __future__ import annotations

from pai_install.parts.context import Context
from pai_install.parts.part import Part, RoleVariables
from pai_install.scheduling.model import SKU_LABEL
from pai_install.scheduling.read import is_scheduled
from pai_install.site import Machine, Site

# Node label of machines with NVIDIA GPUs; the device plugin selects on it, and so can any workload.
GPU_LABEL = "nvidia.com/gpu.present"


class NodeLabelsVariables(RoleVariables):
    """leader: the control plane to ask."""

    role = "node_labels"
    name: str
    labels: dict[str, str]
    taints: tuple[str, ...]
    leader: str


class NodeLabels(Part):
    """The machines that have any; a machine that no longer has any loses those that were set."""

    name = "node_labels"
    phase = "labels"
    model = NodeLabelsVariables
    after = ("control_plane",)
    removable = True

    def variables(self, context: Context, machine: Machine) -> NodeLabelsVariables | None:
        """What the layout says of this node, whether it offers GPUs, and its SKU where there are virtual clusters."""
        labels = _labels(context.site, machine)
        if not (labels or machine.taints):
            return None
        leader = context.leader.hostname
        return NodeLabelsVariables(name=machine.hostname, labels=labels, taints=machine.taints, leader=leader)


def _labels(site: Site, machine: Machine) -> dict[str, str]:
    offers = site.settings.nvidia_device_plugin and site.sku_of(machine).has_nvidia
    sku = {SKU_LABEL: machine.sku} if machine.worker and is_scheduled(site) else {}
    return {**({GPU_LABEL: "true"} if offers else {}), **machine.labels, **sku}
