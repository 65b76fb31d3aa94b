"""Labels and taints of nodes: of the layout, of NVIDIA GPUs, and of a worker's SKU."""

from __future__ import annotations

from pai_install.parts.context import Context
from pai_install.parts.part import Part, RoleVariables
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
    """Machines with labels or taints. A machine loses labels that are no longer desired."""

    name = "node_labels"
    phase = "labels"
    model = NodeLabelsVariables
    after = ("control_plane",)
    removable = True

    def variables(self, context: Context, machine: Machine) -> NodeLabelsVariables | None:
        """Returns the labels of the layout, of GPUs, and of this node's scheduler."""
        labels = {**_labels(context.site, machine), **context.scheduling_labels.get(machine.hostname, {})}
        if not (labels or machine.taints):
            return None
        leader = context.leader.hostname
        return NodeLabelsVariables(name=machine.hostname, labels=labels, taints=machine.taints, leader=leader)


def _labels(site: Site, machine: Machine) -> dict[str, str]:
    offers = site.settings.nvidia_device_plugin and site.sku_of(machine).has_nvidia
    return {**({GPU_LABEL: "true"} if offers else {}), **machine.labels}
