"""The device plugin on machines that should have GPUs and have no driver: it waits, and notices what comes."""

from __future__ import annotations

import base64
import gzip
import json
import platform
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Cluster

pytestmark = pytest.mark.lab

WORKERS = {"lab-worker1", "lab-worker2"}
OURS = ("--namespace", "kube-system", "--selector", "app.kubernetes.io/name=nvidia-device-plugin")


def pods(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Node -> the plugin's pod."""
    found = json.loads(cluster.kubectl("get", "pods", *OURS, "--output", "json"))["items"]
    return {pod["spec"]["nodeName"]: pod for pod in found if "nodeName" in pod["spec"]}


def plugin(pod: dict[str, Any]) -> dict[str, Any]:
    """The state of the plugin's own container. A new pod has none."""
    states = pod["status"].get("containerStatuses", ())
    return next((entry for entry in states if entry["name"] == "plugin"), {"ready": False, "restartCount": 0})


def test_it_runs_on_the_machines_with_nvidia_skus_alone(cluster: Cluster) -> None:
    found = pods(cluster)
    assert set(found) == WORKERS
    for pod in found.values():
        assert pod["status"]["phase"] == "Running"
        assert all(entry["ready"] for entry in pod["status"]["containerStatuses"])
        assert plugin(pod)["image"].startswith("registry.pai.internal/")


def test_it_says_that_there_is_no_driver_and_waits(cluster: Cluster) -> None:
    for pod in pods(cluster).values():
        said = cluster.kubectl("--namespace", "kube-system", "logs", pod["metadata"]["name"], "--container", "plugin")
        assert "Failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND" in said
        assert "Waiting indefinitely" in said


def test_what_others_say_of_gpus_stays(cluster: Cluster) -> None:
    """A plugin without a driver registers nothing: it must not take away what somebody else offers."""
    patch = json.dumps({"status": {"capacity": {"example.com/gpu-stand-in": "8"}}})
    cluster.kubectl("patch", "node", "lab-worker2", "--subresource=status", "--type=merge", "--patch", patch)
    cluster.kubectl("delete", "pods", *OURS, "--field-selector=spec.nodeName=lab-worker2")
    running = _until(lambda: "lab-worker2" in pods(cluster) and plugin(pods(cluster)["lab-worker2"])["ready"])
    assert running
    node = json.loads(cluster.kubectl("get", "node", "lab-worker2", "--output", "json"))
    assert node["status"]["capacity"]["example.com/gpu-stand-in"] == "8"


ALL = "nvidia.com/gpu=all"
SEES = "test -e /usr/bin/nvidia-smi && echo a GPU || echo none"


def test_pod_that_asks_for_no_gpu_gets_none(cluster: Cluster) -> None:
    """What images of CUDA set is not believed; a mount, which only the device plugin should make, is."""
    asked = {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": ALL}]}
    place = "/var/run/nvidia-container-devices/cdi/nvidia.com/gpu/all"
    mounted = {"volumeMounts": [{"name": "asked", "mountPath": place}]}
    try:
        assert seen_in_pod(cluster, "by-environment", asked) == "none"
        assert seen_in_pod(cluster, "by-mount", mounted) == "a GPU"
    finally:
        cluster.kubectl("delete", "pods", "--selector=app=gpu-visible", "--wait=true")


def seen_in_pod(cluster: Cluster, name: str, container: dict[str, Any]) -> str:
    """What a pod on a worker sees of GPUs, through RuntimeClass nvidia."""
    image = cluster.on("lab-worker2", "ctr -n k8s.io images ls -q | grep ^registry.*/busybox: | head -n 1").strip()
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "gpu-visible"}},
        "spec": {
            "restartPolicy": "Never",
            "runtimeClassName": "nvidia",
            "nodeSelector": {"kubernetes.io/hostname": "lab-worker2"},
            "containers": [{"name": "looks", "image": image, "command": ["/bin/sh", "-c", SEES], **container}],
            "volumes": [{"name": "asked", "hostPath": {"path": "/dev/null"}}],
        },
    }
    text = base64.b64encode(json.dumps(pod).encode()).decode()
    kubectl = "kubectl --kubeconfig /etc/kubernetes/admin.conf"
    cluster.on("lab-master", f"echo {text} | base64 -d | {kubectl} apply --filename -")
    cluster.kubectl("wait", f"pod/{name}", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=120s")
    return cluster.kubectl("logs", name).strip()


LIBRARY = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so"
# what a kubelet remembers of a plugin that is gone, it goes on to report as 0 GPUs
FORGET = (
    f"rm -f {LIBRARY}.1 {LIBRARY}.0-stand-in; systemctl stop kubelet; "
    "rm -f /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint; systemctl start kubelet device-plugin-stand-in"
)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the stand-in goes where the libraries of x86_64 are")
def test_a_driver_that_comes_later_is_noticed_and_its_gpus_are_offered(cluster: Cluster, tmp_path: Path) -> None:
    """The driver is a stand-in library of two GPUs; the plugin, its way into the machine and the kubelet are real."""
    built = tmp_path / "library"
    source = Path(__file__).parent / "nvml_stand_in.c"
    subprocess.run(["gcc", "-Os", "-s", "-shared", "-fPIC", "-o", str(built), str(source)], check=True)
    text = base64.b64encode(gzip.compress(built.read_bytes())).decode()
    worker = "lab-worker1"
    before = plugin(pods(cluster)[worker])["restartCount"]
    cluster.on(worker, "systemctl stop device-plugin-stand-in")
    try:
        cluster.on(worker, f"echo {text} | base64 -d | gunzip > {LIBRARY}.0-stand-in")
        cluster.on(worker, f"ln -s libnvidia-ml.so.0-stand-in {LIBRARY}.1")
        assert _until(lambda: plugin(pods(cluster)[worker])["restartCount"] > before)
        assert _until(lambda: allocatable(cluster, worker) == "2")
        assert all(entry["ready"] for entry in pods(cluster)[worker]["status"]["containerStatuses"])
    finally:
        cluster.on(worker, FORGET)


def allocatable(cluster: Cluster, node: str) -> str | None:
    """How many GPUs Kubernetes offers there."""
    found = json.loads(cluster.kubectl("get", "node", node, "--output", "json"))
    amount: str | None = found["status"]["allocatable"].get("nvidia.com/gpu")
    return amount


@pytest.mark.soak
def test_switched_off_it_is_taken_away_and_comes_back(cluster: Cluster) -> None:
    config = cluster.site / "config.yaml"
    kept = config.read_text()
    config.write_text(f"{kept}\nnvidia_device_plugin: false\n")
    try:
        # the store and the machines drop its images, too
        phases = ["components", "runtime", "labels", "addons", "verify", "health"]
        assert [phase["name"] for phase in cluster.plan()["phases"]] == phases
        assert cluster.converge()["ok"]
        assert _until(lambda: pods(cluster) == {})
        assert cluster.to_change() == []
        assert "nvidia.com/gpu.present" not in cluster.kubectl("get", "nodes", "--show-labels")
    finally:
        config.write_text(kept)
        report = cluster.converge()
    assert report["ok"], report["stderr"]
    assert set(pods(cluster)) == WORKERS
    assert cluster.to_change() == []


def _until(condition: Callable[[], bool], timeout_s: float = 180) -> bool:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(5)
    return False
