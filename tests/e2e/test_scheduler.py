"""The scheduler that the site names: its controllers run, admit jobs, stop nothing of the system, and go again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import EXISTING, Cluster, equip, pai_install

pytestmark = pytest.mark.lab

SERVICES = """\
scheduler: {type: kueue}
virtual-clusters:
  - {name: default, quota: [{sku: lab-gpu, machines: 1}]}
"""
TEAM = "queued-team"
QUEUES: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}},
    {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "any"}},
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": TEAM},
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [
                {
                    "coveredResources": ["cpu"],
                    "flavors": [{"name": "any", "resources": [{"name": "cpu", "nominalQuota": "100m"}]}],
                }
            ],
        },
    },
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "queue", "namespace": TEAM},
        "spec": {"clusterQueue": TEAM},
    },
]
# those in which it has a part
PHASES = {"components", "runtime", "addons"}
KINDS = ("workloads", "localqueues", "clusterqueues", "resourceflavors")


@pytest.fixture(scope="module")
def kueue(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with Kueue and a queue; without them again afterwards."""
    services = cluster.site / "services-configuration.yaml"
    services.write_text(SERVICES)
    try:
        equip(cluster.site)
        report = cluster.converge()
        assert report["ok"], report["stderr"]
        create(cluster, *QUEUES)
        yield cluster
    finally:
        remove_queues(cluster)
        services.unlink()
        report = cluster.converge()
    assert report["ok"], report["stderr"]
    cluster.ask("wait", "namespace/pai-kueue", "namespace/pai-jobset", "--for=delete", "--timeout=60s")
    left = cluster.kubectl(
        "get", "customresourcedefinitions,validatingwebhookconfigurations,namespaces", "--output=name"
    )
    assert "kueue" not in left
    assert "jobset" not in left


def create(cluster: Cluster, *objects: dict[str, Any]) -> None:
    path = cluster.site / ".pai" / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    try:
        cluster.kubectl("apply", f"--filename={path}")
    finally:
        path.unlink()


def remove_queues(cluster: Cluster) -> None:
    """All that would keep Kueue in the cluster; the jobs first."""
    cluster.ask("delete", "jobs", "--all", f"--namespace={TEAM}", "--timeout=60s")
    for kind in KINDS:
        cluster.ask("delete", f"{kind}.kueue.x-k8s.io", "--all", "--all-namespaces", "--timeout=60s")
    cluster.ask("delete", "namespace", TEAM, "--ignore-not-found", "--wait=false")


def job(cluster: Cluster, name: str, cpu: str) -> dict[str, Any]:
    """One of the queue, suspended until it is admitted."""
    image = cluster.on(EXISTING, "ctr -n k8s.io images ls -q | grep /busybox:").split()[0]
    container = {"name": "main", "image": image, "command": ["/bin/true"], "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": TEAM, "labels": {"kueue.x-k8s.io/queue-name": "queue"}},
        "spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


def test_its_controllers_run_and_nothing_is_left_to_do(kueue: Cluster) -> None:
    for name in ("kueue", "jobset"):
        words = (f"--namespace=pai-{name}", "deployment", f"{name}-controller-manager")
        assert kueue.kubectl("get", *words, "--output=jsonpath={.status.availableReplicas}") == "1"
    assert not PHASES & set(kueue.to_change())


def test_a_job_waits_for_its_quota(kueue: Cluster) -> None:
    create(kueue, job(kueue, "fits", "50m"), job(kueue, "too-large", "200m"))
    words = (f"--namespace={TEAM}", "--for=condition=Complete", "job/fits", "--timeout=60s")
    assert kueue.ask("wait", *words).returncode == 0, kueue.kubectl("describe", "workloads", f"--namespace={TEAM}")
    shown = kueue.kubectl("get", "job", "too-large", f"--namespace={TEAM}", "--output=jsonpath={.spec.suspend}")
    assert shown == "true"
    assert kueue.kubectl("get", "pods", f"--namespace={TEAM}", "--output=name").count("too-large") == 0
    assert "insufficient quota" in kueue.kubectl("get", "workloads", f"--namespace={TEAM}", "--output=yaml")


def test_what_is_used_and_what_would_change_is_said(kueue: Cluster) -> None:
    usage = asked(kueue, "usage")
    (default,) = usage["virtual_clusters"]
    assert default["name"] == "default"
    assert {row["sku"]: (row["guaranteed"], row["used"]) for row in default["quota"]} == {"lab-gpu": (8, 0)}
    assert asked(kueue, "plan")["changes"] == []


def asked(cluster: Cluster, verb: str) -> dict[str, Any]:
    """What `pai-install vc VERB` says, as data."""
    done = pai_install("vc", verb, "--site", str(cluster.site), "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_what_needs_no_quota_needs_no_kueue(kueue: Cluster) -> None:
    """With its controllers down the system's own pods and jobs are made as ever; jobs of users wait for them."""
    scale(kueue, 0)
    try:
        for namespace in ("kube-system", "kube-flannel", TEAM):
            assert refusal(kueue, "run", "one", "--image=x", f"--namespace={namespace}") == ""
        for namespace in ("kube-system", "kube-flannel", "pai-kueue"):
            assert refusal(kueue, "create", "job", "one", "--image=x", f"--namespace={namespace}") == ""
        refused = refusal(kueue, "create", "job", "one", "--image=x", f"--namespace={TEAM}")
        assert 'failed calling webhook "mjob.kb.io"' in refused
    finally:
        scale(kueue, 1)


def test_every_promise_is_kept_and_nothing_of_the_test_is_left(kueue: Cluster) -> None:
    """Also while the scheduler is stopped; what Kueue itself waits for, five minutes, is left out."""
    done = pai_install("scheduler", "test", "--site", str(kueue.site), "--disruptive", "--format", "json")
    report = json.loads(done.stdout)
    found = {row["id"]: row["verdict"] for row in report["findings"]}
    assert {check for check, verdict in found.items() if verdict != "PASS"} == {"scheduler-requeue"}, report["findings"]
    assert (done.returncode, len(found)) == (0, 12)
    assert "scheduler-self-test" not in kueue.kubectl("get", "namespaces", "--output=name")
    kinds = ",".join(f"{kind}.kueue.x-k8s.io" for kind in ("clusterqueues", "resourceflavors", "topologies"))
    assert "pai-self-test" not in kueue.kubectl("get", kinds, "--output=name")
    assert "pai-install/self-test" not in kueue.kubectl("get", "nodes", "--output=yaml")


def scale(cluster: Cluster, replicas: int) -> None:
    for name in ("kueue", "jobset"):
        words = (f"--namespace=pai-{name}", f"deployment/{name}-controller-manager")
        cluster.kubectl("scale", *words, f"--replicas={replicas}")
        if replicas:
            cluster.kubectl("rollout", "status", *words, "--timeout=60s")
        else:
            cluster.kubectl("wait", words[0], "pod", "--all", "--for=delete", "--timeout=60s")


def refusal(cluster: Cluster, *words: str) -> str:
    """What the API server says against an object; empty where it would be made."""
    done = cluster.ask(*words, "--dry-run=server")
    return done.stderr if done.returncode else ""
