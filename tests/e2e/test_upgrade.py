"""A cluster that an earlier version of pai-install made is taken over by this one, and no running pod notices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import ROOT, SERVE, Cluster, lab_site, pai_install, traces

pytestmark = [pytest.mark.lab, pytest.mark.soak]

SUBNET = "172.30.85"
# earlier version -> workloads whose pods it replaces. The first is the last one before machines held images by digest,
# pods had a CNI folder of ours, and GPUs came by mounts. The second is the last one before the application layer.
EARLIER = {
    "b79dd47": {"kube-flannel", "nvidia-device-plugin", "metrics-server"},
    "b556abcc": {"kube-flannel", "nvidia-device-plugin", "metrics-server"},
}
WORKERS = ("lab-worker1", "lab-worker2")


def git(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs git in this checkout."""
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, timeout=60, check=False)


def earlier(checkout: Path, *words: str) -> None:
    """Runs the earlier version, in the Python environment of this one. Fails the test when it fails."""
    places = {"PYTHONPATH": str(checkout / "installer"), "ANSIBLE_CONFIG": str(checkout / "ansible.cfg")}
    done = subprocess.run(
        [sys.executable, "-m", "pai_install", *words],
        cwd=checkout,
        env={**os.environ, **places},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=4500,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(params=EARLIER)
def version(request: pytest.FixtureRequest) -> str:
    """The earlier version."""
    return str(request.param)


@pytest.fixture
def checkout(tmp_path: Path, version: str) -> Path:
    """The earlier version's files; skips where the history does not reach back so far."""
    if git("cat-file", "-e", f"{version}^{{commit}}").returncode != 0:
        pytest.skip(f"this checkout's history does not have {version}")
    folder = tmp_path / "earlier"
    assert git("clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(folder)).returncode == 0
    assert git("-C", str(folder), "checkout", "--quiet", "--detach", version).returncode == 0
    return folder


@pytest.fixture
def old_cluster(tmp_path: Path, checkout: Path) -> Iterator[Cluster]:
    """A cluster as the earlier version makes it, on machines of the lab."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    site = lab_site(tmp_path, SUBNET)
    up = pai_install("lab", "up", "--site", str(site), "--yes")
    try:
        assert up.returncode == 0, up.stderr
        earlier(checkout, "apply", "--site", str(site), "--yes")
        yield Cluster(site, up)
    finally:
        down = pai_install("lab", "down", "--site", str(site), "--yes")
    assert down.returncode == 0, down.stderr
    assert traces(SUBNET) == []


def start_work(cluster: Cluster) -> None:
    """Pods that are nobody's but their owner's."""
    image = cluster.on(WORKERS[0], "ctr -n k8s.io images ls -q | grep ^registry.*/busybox:").split()[0]
    for worker in WORKERS:
        place = json.dumps({"spec": {"nodeName": worker}})
        words = ("--restart=Never", f"--overrides={place}", "--command", "--", *SERVE)
        cluster.kubectl("run", f"on-{worker}", f"--image={image}", *words)
    cluster.kubectl("wait", "--for=condition=Ready", *(f"pod/on-{worker}" for worker in WORKERS), "--timeout=120s")


def containers(cluster: Cluster) -> dict[tuple[str, str], str]:
    """(node, NAMESPACE/CONTAINER) of each that runs -> since when; a pod's name changes when it is replaced."""
    pods = json.loads(cluster.kubectl("get", "pods", "--all-namespaces", "--output", "json"))["items"]
    found = [(pod, status) for pod in pods for status in pod["status"]["containerStatuses"]]
    return {
        (pod["spec"]["nodeName"], f"{pod['metadata']['namespace']}/{one['name']}"): one["state"]["running"]["startedAt"]
        for pod, one in found
    }


def kubelets(cluster: Cluster) -> dict[str, str]:
    """Machine -> the process of its kubelet."""
    return {name: cluster.on(name, "systemctl show -p MainPID kubelet") for name in ("lab-master", *WORKERS)}


def test_an_earlier_versions_cluster_is_taken_over(old_cluster: Cluster, version: str) -> None:
    start_work(old_cluster)
    before, processes = containers(old_cluster), kubelets(old_cluster)
    plan = old_cluster.plan()
    effects = {effect for phase in plan["phases"] for step in phase["hosts"] for effect in step["effects"]}
    rolled_out = {effect.rpartition("/")[2] for effect in effects if effect.startswith("may restart the pods of ")}
    assert rolled_out == EARLIER[version]
    assert {"may restart kubelet.service", "may restart the static pod etcd"} <= effects
    report = old_cluster.apply()
    assert report["ok"], report["stderr"]
    after = containers(old_cluster)
    again = {name.rpartition("/")[2] for (_node, name), since in after.items() if since not in before.values()}
    assert again <= {"flannel", "plugin", "watcher", "metrics-server", "kube-apiserver"}
    for worker in WORKERS:
        assert after[worker, f"default/on-{worker}"] == before[worker, f"default/on-{worker}"]
    assert kubelets(old_cluster) == processes
    assert old_cluster.run("verify").returncode == 0
    second = old_cluster.apply()
    assert {host: counts["changed"] for host, counts in second["hosts"].items()} == dict.fromkeys(processes, 0)
    assert old_cluster.plan()["phases"] == []
