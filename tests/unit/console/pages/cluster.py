"""A cluster in use, for tests of pages: jobs of two groups, their quota, and the utilization of their GPUs."""

from __future__ import annotations

import time
from typing import Any

from starlette.testclient import TestClient

from pai_install.agents.common.utilization import Series, Work, condition
from pai_install.console.services import ConsoleServices
from pai_install.schedulers.kueue.compile import flavor_name
from tests.unit.console.conftest import eventually
from tests.unit.console.live import LiveCluster
from tests.unit.console.routes.test_cluster_views import node, queue
from tests.unit.console.routes.test_jobs import FILE, named, post

GPU = "nvidia.com/gpu"


def workload(name: str, namespace: str, cluster: str, gpus: int, *, reserved: bool) -> dict[str, Any]:
    """What Kueue keeps of a job."""
    container = {"name": "main", "resources": {"limits": {GPU: str(gpus)}}}
    status: dict[str, Any] = {}
    if reserved:
        status["conditions"] = [{"type": "QuotaReserved", "status": "True"}]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {
            "name": f"jobset-{name}",
            "uid": f"uid-{namespace}-{name}",
            "namespace": namespace,
            "ownerReferences": [{"kind": "JobSet", "name": name, "controller": True}],
        },
        "spec": {"queueName": cluster, "podSets": [{"count": 1, "template": {"spec": {"containers": [container]}}}]},
        "status": status,
    }


def measured(level: int, for_s: int, average: int) -> dict[str, str]:
    """The condition of a pod whose GPUs had this level for this time."""
    at = int(time.time())
    steps = ((at - for_s, 100), (at, level)) if level < 100 else ((at, 100),)
    series = Series(at, steps)
    return condition(series, series, 2, Work(average, 100), "2026-01-01T00:00:00Z")


def running_pod(job: str, namespace: str, user: str, machine: str, *conditions: dict[str, str]) -> dict[str, Any]:
    """The pod of a job with one instance."""
    labels = {
        "pai-install/user": user,
        "jobset.sigs.k8s.io/jobset-name": job,
        "jobset.sigs.k8s.io/replicatedjob-name": "worker",
        "batch.kubernetes.io/job-completion-index": "0",
    }
    owner = {"kind": "Job", "name": f"{job}-worker-0", "controller": True}
    limits = {"limits": {GPU: "8"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{job}-worker-0-0",
            "uid": f"uid-{namespace}-{job}-0",
            "namespace": namespace,
            "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": machine, "containers": [{"name": "main", "resources": limits}]},
        "status": {
            "phase": "Running",
            "startTime": "2026-01-01T00:01:00Z",
            "containerStatuses": [{"name": "main", "ready": True, "restartCount": 0, "state": {"running": {}}}],
            "conditions": list(conditions),
        },
    }


def fill(web: TestClient, services: ConsoleServices, kubernetes: LiveCluster) -> None:
    """alice waits for what carol, of her group, and bob, of another one, hold."""
    scheduling = services.model.profile.require_scheduling()
    flavor = flavor_name(scheduling, "a100")
    kubernetes.put(*(node(name, 8) for name in ("g1", "g2", "g3")))
    kubernetes.put(queue("research", flavor, 8), queue("default", flavor, 8))
    for who, name, cluster in (
        ("alice", "train", "research"),
        ("carol", "holds", "research"),
        ("bob", "hides", "default"),
    ):
        content = FILE if name == "train" else FILE.replace("instances: 2", "instances: 1")
        assert post(web, who, named(content, name, cluster)).status_code == 202
    kubernetes.put(
        workload("train", "vision-1", "research", 2, reserved=False),
        workload("holds", "vision-1", "research", 8, reserved=True),
        workload("hides", "nlp", "default", 8, reserved=True),
        running_pod("holds", "vision-1", "carol", "g1", measured(3, 2 * 3600, 41)),
        running_pod("hides", "nlp", "bob", "g2", measured(100, 60, 97)),
    )
    eventually(lambda: len(services.model.jobs) == 3 and len(services.model.pods()) == 2)
    eventually(lambda: len(services.model.nodes()) == 3)
    eventually(lambda: seen(services) == 3)


def seen(services: ConsoleServices) -> int:
    services.model.forget()
    return len(services.model.usage().jobs)
