"""Changes that a running cluster cannot take are refused; operations act on its nodes; admins find their tools."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from .conftest import Cluster, pai_install

pytestmark = pytest.mark.lab

MASTER, WORKER = "lab-master", "lab-worker2"
STORE = Path.home() / ".cache" / "pai-install" / "entries"


@contextmanager
def rewritten(path: Path, before: str, after: str) -> Iterator[None]:
    """A file of the site with something else in it, for a while."""
    kept = path.read_text()
    assert before in kept
    path.write_text(kept.replace(before, after))
    try:
        yield
    finally:
        path.write_text(kept)


# what stands in config.yaml, what is asked for instead, what the refusal must say
REFUSED = (
    ("pod_cidr: 10.200.0.0/16", "pod_cidr: 10.201.0.0/16", "pod_cidr: the cluster runs with 10.200.0.0/16"),
    ("service_cidr: 10.192.0.0/16", "service_cidr: 10.193.0.0/16", "service_cidr: the cluster runs with 10.192.0.0/16"),
    ("user: pai", 'user: pai\nkubernetes_version: "1.35"', "kubernetes_version: the cluster runs with 1.36.3"),
)
RENAMED = "lab-renamed"


def test_changes_that_a_running_cluster_cannot_take_are_refused_at_once(cluster: Cluster) -> None:
    """Each at its line with what runs now, before anything is fetched, built or touched."""
    fetched = {path.name for path in STORE.iterdir()}
    with ExitStack() as stack:
        for before, after, _said in REFUSED:
            stack.enter_context(rewritten(cluster.site / "config.yaml", before, after))
        stack.enter_context(rewritten(cluster.site / "layout.yaml", f"hostname: {WORKER}", f"hostname: {RENAMED}"))
        refused = [cluster.run("plan", "--no-diff"), cluster.run("apply", "--yes")]
    for done in refused:
        assert done.returncode == 4, done.stderr
        for said in (*(said for _before, _after, said in REFUSED), f"hostname: {RENAMED} runs with {WORKER}"):
            assert said in done.stderr
        assert done.stderr.count("config.yaml:") >= len(REFUSED)
        assert "layout.yaml:" in done.stderr
    # other workers may fill the cache meanwhile
    fresh = {path.name for path in STORE.iterdir()} - fetched
    assert [name for name in fresh if "kubernetes" in name] == []
    assert f"node/{RENAMED}" not in cluster.kubectl("get", "nodes", "--output", "name").split()


def node(*words: str, site: Path) -> dict[str, Any]:
    """Runs an operation on nodes; its report."""
    done = pai_install("node", words[0], "--site", str(site), "--yes", "--format", "json", *words[1:])
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["exit_code"] == done.returncode == 0, done.stderr
    return report


def unschedulable(cluster: Cluster) -> bool:
    """Whether Kubernetes keeps new pods off the worker."""
    spec = json.loads(cluster.kubectl("get", "node", WORKER, "--output", "json"))["spec"]
    return bool(spec.get("unschedulable", False))


def test_node_is_taken_out_of_scheduling_and_put_back(cluster: Cluster) -> None:
    """By the one pipeline: each run leaves a report; a node that is out already is left alone."""
    runs = cluster.site / ".pai" / "runs"
    before = set(runs.iterdir())
    try:
        node("cordon", WORKER, site=cluster.site)
        assert unschedulable(cluster)
        node("cordon", WORKER, site=cluster.site)
    finally:
        node("uncordon", WORKER, site=cluster.site)
    assert not unschedulable(cluster)
    assert all((run / "report.json").is_file() for run in set(runs.iterdir()) - before)
    assert cluster.to_change() == []


def pods_of(cluster: Cluster, machine: str) -> list[str]:
    """Pods on a machine that something else than a DaemonSet or the machine itself brought there."""
    where = f"--field-selector=spec.nodeName={machine}"
    found = json.loads(cluster.kubectl("get", "pods", "--all-namespaces", where, "--output", "json"))["items"]
    owners = {
        pod["metadata"]["name"]: pod["metadata"].get("ownerReferences", [{"kind": ""}])[0]["kind"] for pod in found
    }
    return [name for name, owner in owners.items() if owner not in ("DaemonSet", "Node")]


def test_node_is_drained(cluster: Cluster) -> None:
    image = cluster.on(WORKER, "ctr -n k8s.io images ls -q | grep ^registry.*/pause: | head -n 1").strip()
    cluster.kubectl("create", "deployment", "drained", f"--image={image}", "--replicas=4")
    try:
        cluster.kubectl("rollout", "status", "deployment/drained", "--timeout=120s")
        assert any(name.startswith("drained") for name in pods_of(cluster, WORKER))
        node("drain", WORKER, site=cluster.site)
        assert unschedulable(cluster)
        assert pods_of(cluster, WORKER) == []
    finally:
        node("uncordon", WORKER, site=cluster.site)
        cluster.kubectl("delete", "deployment", "drained")


def test_roots_kubectl_works_on_a_control_plane(cluster: Cluster) -> None:
    assert f"node/{WORKER}" in cluster.on(MASTER, "kubectl get nodes --output name").split()


def test_kubectl_top_works(cluster: Cluster) -> None:
    """metrics-server is an add-on that every site has; it needs two looks at the kubelets first."""
    deadline = time.monotonic() + 180
    while True:
        done = pai_install("kubectl", "--site", str(cluster.site), "--", "top", "nodes", "--no-headers")
        named = {line.split()[0] for line in done.stdout.splitlines()}
        if done.returncode == 0 and {MASTER, WORKER} <= named:
            return
        assert time.monotonic() < deadline, f"{done.stdout}{done.stderr}"
        time.sleep(3)


def test_add_on_that_is_switched_off_is_taken_away_and_comes_back(cluster: Cluster) -> None:
    where = (
        "--namespace",
        "kube-system",
        "get",
        "deployment,service",
        "--selector",
        "pai-install/addon=metrics_server",
    )
    with rewritten(cluster.site / "config.yaml", "user: pai", "user: pai\nmetrics_server: false"):
        phases = [phase for phase in cluster.plan()["phases"] if phase["name"] not in ("verify", "health")]
        assert [(phase["name"], phase["hosts"][0]["reasons"]) for phase in phases] == [
            ("components", ["settings changed: component_store_images"]),
            ("runtime", ["settings changed: system_images_images"]),
            ("network", ["the site no longer asks for addon.metrics_server"]),
        ]
        assert cluster.converge()["ok"]
        assert cluster.kubectl(*where, "--output", "name") == ""
        assert cluster.kubectl("get", "apiservice", "v1beta1.metrics.k8s.io", "--ignore-not-found") == ""
        assert "daemonset.apps/nvidia-device-plugin" in cluster.kubectl(
            "--namespace", "kube-system", "get", "daemonset", "--output", "name"
        )
    assert cluster.converge()["ok"]
    assert len(cluster.kubectl(*where, "--output", "name").split()) == 2
