"""A pod with one GPU on each machine: the whole way from the scheduler to the driver."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pai_install.engine.base import Engine
from pai_install.health.nodes import KubectlCall, kubectl
from pai_install.plan.model import Inventory

SELECTOR = "app=pai-health-gpu"
WAIT = "120s"
MACHINE_LABEL = "pai-install/machine"
_LOG = re.compile(r"^\[pod/([^/\]]+)/[^\]]*\] ?(.*)$")
POD_TABLE = (
    "jsonpath={range .items[*]}{.metadata.labels['" + MACHINE_LABEL + "']}"
    '{"\\t"}{.metadata.name}{"\\t"}{.status.phase}{"\\t"}{.status.reason}'
    '{.status.conditions[?(@.status=="False")].message}{.status.containerStatuses[*].state.waiting.message}{"\\n"}{end}'
)


def try_pods(engine: Engine, inventory: Inventory, devices: Mapping[str, str], image: str) -> dict[str, dict[str, Any]]:
    """Machine -> how a pod with one device there went, in the form of the collector's commands.

    devices: machine -> resource name. rc 0 and the output of `nvidia-smi -L`; rc 1 and why when it failed; timed_out
    when it was not started in time, for instance because all GPUs are in use. Raises PaiError when the cluster
    cannot be asked. The pods are removed.
    """
    machines = sorted(devices)
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": [_pod(m, devices[m], image) for m in machines]})
    wait = ("wait", "pod", "-l", SELECTOR, "--for=jsonpath={.status.phase}=Succeeded", f"--timeout={WAIT}")
    calls = [
        KubectlCall(("delete", "pod", "-l", SELECTOR, "--ignore-not-found", "--timeout=60s")),
        KubectlCall(("create", "-f", "-"), manifest),
        KubectlCall(wait, may_fail=True),
        KubectlCall(("get", "pod", "-l", SELECTOR, "-o", POD_TABLE)),
        KubectlCall(("logs", "-l", SELECTOR, "--prefix", "--tail=100", "--max-log-requests=2000"), may_fail=True),
        KubectlCall(("delete", "pod", "-l", SELECTOR, "--ignore-not-found", "--wait=false")),
    ]
    _, _, _, pods, logs, _ = kubectl(engine, inventory, calls)
    return results(machines, pods, logs)


def _pod(machine: str, device: str, image: str) -> dict[str, Any]:
    container = {
        "name": "gpu",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["nvidia-smi", "-L"],
        "resources": {"limits": {device: "1"}},
    }
    metadata = {"name": f"pai-health-{machine}", "labels": labels_of(SELECTOR, machine)}
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
    """Labels by which a pod is found again, and whose it is."""
    name, _, value = selector.partition("=")
    return {name: value, MACHINE_LABEL: machine}


def results(machines: Sequence[str], pods: str, logs: str) -> dict[str, dict[str, Any]]:
    """What the table of pods (POD_TABLE) and the prefixed log lines say of each machine."""
    rows = {row[0]: row for row in (line.split("\t") for line in pods.splitlines()) if len(row) == 4}
    printed: dict[str, list[str]] = {}
    for line in logs.splitlines():
        if match := _LOG.match(line):
            printed.setdefault(match.group(1), []).append(match.group(2))
    found = {}
    for machine in machines:
        _, pod, phase, why = rows.get(machine, ("", "", "", "the pod is gone"))
        output = "\n".join(printed.get(pod, ()))
        result: dict[str, Any] = {"rc": None, "timed_out": True, "stdout": output, "stderr": why}
        if phase in ("Succeeded", "Failed"):
            result = {"rc": 0 if phase == "Succeeded" else 1, "stdout": output, "stderr": why}
        found[machine] = result
    return found
