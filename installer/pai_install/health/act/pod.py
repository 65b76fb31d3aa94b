"""A pod with one GPU on each machine: the whole way from the scheduler to the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from pai_install.cluster.client import ClusterClient, Select
from pai_install.errors import PaiError
from pai_install.kube.model import Pod

NAMESPACE = "default"
SELECTOR = "app=pai-health-gpu"
PODS = Select(("pods",), NAMESPACE, SELECTOR)
WAIT_S = 120
MACHINE_LABEL = "pai-install/machine"


def try_pods(cluster: ClusterClient, devices: Mapping[str, str], image: str) -> dict[str, dict[str, Any]]:
    """Returns machine -> result of a pod with one device, in the form of the collector's commands.

    devices: machine -> resource name. rc 0: the output of `nvidia-smi -L`. rc 1: the cause of the failure. timed_out:
    it did not start in time, for instance because all GPUs are in use. Raises PaiError if the cluster is unreachable.
    The pods are deleted.
    """
    machines = sorted(devices)
    cluster.delete_selected(PODS, wait_s=60)
    try:
        cluster.create([_pod(machine, devices[machine], image) for machine in machines])
        cluster.wait(PODS, "jsonpath={.status.phase}=Succeeded", WAIT_S)
        (pods,) = cluster.list(PODS)
        logs = cluster.logs_of(PODS, tail=100)
    except BaseException:
        with suppress(PaiError):
            cluster.delete_selected(PODS)
        raise
    cluster.delete_selected(PODS)
    return results(machines, tuple(map(Pod.parse, pods)), logs)


def _pod(machine: str, device: str, image: str) -> dict[str, Any]:
    container = {
        "name": "gpu",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["nvidia-smi", "-L"],
        "resources": {"limits": {device: "1"}},
    }
    name = f"pai-health-{machine}"
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels_of(SELECTOR, machine)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec_on(machine, container)}


def spec_on(machine: str, container: dict[str, Any]) -> dict[str, Any]:
    """A pod's spec that runs a container with GPUs once, on that machine, whatever taints it has."""
    return {
        "restartPolicy": "Never",
        "runtimeClassName": "nvidia",
        "nodeSelector": {"kubernetes.io/hostname": machine},
        "tolerations": [{"operator": "Exists"}],
        "automountServiceAccountToken": False,
        "containers": [container],
    }


def labels_of(selector: str, machine: str) -> dict[str, str]:
    """Returns the labels that identify a pod and its machine."""
    name, _, value = selector.partition("=")
    return {name: value, MACHINE_LABEL: machine}


def results(machines: Sequence[str], pods: Sequence[Pod], logs: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Returns the result of each machine from the pods and their logs (pod -> text)."""
    of_machine = {pod.labels.get(MACHINE_LABEL, ""): pod for pod in pods}
    return {machine: _result(of_machine.get(machine), logs) for machine in machines}


def _result(pod: Pod | None, logs: Mapping[str, str]) -> dict[str, Any]:
    if pod is None:
        return {"rc": None, "timed_out": True, "stdout": "", "stderr": "the pod was deleted"}
    result = {"stdout": logs.get(pod.name, ""), "stderr": pod.why}
    if pod.finished:
        return {"rc": 0 if pod.phase == "Succeeded" else 1, **result}
    return {"rc": None, "timed_out": True, **result}
