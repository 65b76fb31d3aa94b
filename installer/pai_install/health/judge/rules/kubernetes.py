"""Kubernetes' view of a machine, next to the machine's own evidence."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.checks.result import Result, failed, passed, skipped, unknown, warned
from pai_install.checks.verdict import Action
from pai_install.health.judge.check import fleet_check
from pai_install.health.judge.fleet import HealthFleet, MachineFacts
from pai_install.kube.model import Node

_NO_ANSWER = (
    "run on that machine: kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes, and check the API server "
    "with crictl ps -a"
)


def _node_of(fleet: HealthFleet, machine: MachineFacts) -> Node | Result:
    if fleet.nodes is None and fleet.nodes_gap:
        return unknown(f"the control plane did not answer: {fleet.nodes_gap}", remedy=_NO_ANSWER)
    if fleet.nodes is None:
        return skipped("no control-plane node of this run belongs to a cluster")
    return fleet.nodes.get(machine.name) or unknown("the cluster has no node with this name")


@fleet_check(
    id="kubernetes-ready",
    title="The Kubernetes node is ready",
    reads="kubectl get nodes on a control plane",
    rule="FAIL when the node is not ready. WARN when cordoned. UNKNOWN when no control plane answers",
    source="OpenPAI NodeNotReady",
    remedy="check journalctl -u kubelet on the machine",
    action=Action.DRAIN,
)
def ready(fleet: HealthFleet) -> Iterator[tuple[str, Result]]:
    for machine in fleet.machines:
        if machine.expected.node:
            node = _node_of(fleet, machine)
            yield machine.name, node if isinstance(node, Result) else _readiness(node)


def _readiness(node: Node) -> Result:
    if node.ready is None:
        return unknown("Kubernetes does not report the readiness of the node")
    if not node.ready:
        status = next(entry.status for entry in node.conditions if entry.type == "Ready")
        return failed("the node is not ready", status, "True")
    if node.cordoned:
        return warned("the node is cordoned and gets no new pods", "cordoned", "schedulable")
    return passed("ready", "ready")


@fleet_check(
    id="kubernetes-gpus",
    title="Kubernetes offers the GPUs of the layout",
    reads="allocatable and capacity, nvidia-smi, layout",
    rule="FAIL when they differ, except by a multiple (time slicing). Action config if no node offers any",
    source="GOP validator; OpenPAI NodeGpuCountChanged",
    remedy="check the pod nvidia-device-plugin of that node (namespace kube-system). Delete the pod after a repair: "
    "it keeps an unhealthy GPU unhealthy",
    action=Action.DRAIN,
)
def gpus(fleet: HealthFleet) -> Iterator[tuple[str, Result]]:
    for machine in fleet.machines:
        if not (machine.nvidia or machine.expected.device) or not machine.expected.worker:
            continue
        node = _node_of(fleet, machine)
        yield machine.name, node if isinstance(node, Result) else _offer(node, machine, fleet)


def _offer(node: Node, machine: MachineFacts, fleet: HealthFleet) -> Result:
    device = machine.expected.device or "nvidia.com/gpu"
    mig = sum(amount for name, amount in node.allocatable.items() if name.startswith("nvidia.com/mig-"))
    seen = machine.gpus if device.startswith("nvidia.com/") else None
    if mig:
        return _mig_offer(mig, machine)
    offered, had = node.allocatable.get(device, 0), node.capacity.get(device, 0)
    wanted = machine.expected.count if machine.expected.count is not None else seen
    value = f"allocatable {offered:g}, capacity {had:g}, nvidia-smi {'?' if seen is None else seen}"
    # A node without the resource never had a device plugin. If a plugin has ended, the node still shows 0.
    if device not in node.allocatable:
        return _no_offer(device, machine, fleet)._replace(value=value, expected=str(wanted))
    if wanted is not None and offered < wanted:
        return failed(f"Kubernetes offers fewer {device} than in the layout", value, str(wanted))
    # Time slicing offers each GPU several times, so a multiple is no contradiction.
    shared = bool(seen) and offered == had and offered > (seen or 0) and offered % (seen or 1) == 0
    if seen is not None and offered != seen and not shared:
        return failed("Kubernetes and nvidia-smi disagree on the number of GPUs", value, str(wanted))
    if seen is None and device.startswith("nvidia.com/"):
        return unknown("cannot compare: nvidia-smi did not answer", value)
    return passed(value, str(wanted), message="GPUs are shared by time slicing" if shared else "")


def _no_offer(device: str, machine: MachineFacts, fleet: HealthFleet) -> Result:
    """The reason. If no node offers the resource, the plugin is at fault, and draining nodes would not help."""
    nvidia = device.startswith("nvidia.com/")
    nowhere = all(device not in node.allocatable for node in (fleet.nodes or {}).values())
    action = Action.CONFIG if nowhere else None
    if nvidia and machine.gpus is None:
        message = (
            f"Kubernetes offers no {device}, and nvidia-smi did not answer: the driver is missing or does not work"
        )
        remedy = "install or repair the driver. The device plugin detects this within a minute"
        return failed(message, action=action, remedy=remedy)
    if not nowhere:
        return failed(f"Kubernetes offers no {device} here: the device plugin does not run or finds no GPU")
    remedy = "run apply. With nvidia_device_plugin: false in config.yaml, install your own device plugin"
    other = f"install a device plugin for {device}: pai-install brings NVIDIA's only"
    message = f"no node of the cluster offers {device}: no device plugin runs"
    return failed(message, action=action, remedy=remedy if nvidia else other)


def _mig_offer(mig: float, machine: MachineFacts) -> Result:
    if machine.gpus is None:
        return unknown("cannot compare: nvidia-smi did not answer", f"{mig:g}")
    if mig != machine.mig_devices:
        return failed(
            "Kubernetes and nvidia-smi disagree on the number of MIG devices", f"{mig:g}", machine.mig_devices
        )
    return passed(f"{mig:g} MIG devices", machine.mig_devices)
