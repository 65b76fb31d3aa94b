"""`python -m tests.perf.console_bench`: the console with 10,000 jobs, 50,000 pods, and 1,000 nodes in memory.

It prints times of answers and memory as JSON. Nothing is asserted: a busy host is slow.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from threading import Event
from typing import Any

from starlette.requests import HTTPConnection
from starlette.testclient import TestClient

from pai_install.cluster.client import ClusterClient, Select, WatchEvent
from pai_install.console.caller import Caller, CallerKind
from pai_install.console.server import create_app
from pai_install.console.services import ConsoleServices
from pai_install.console.settings import ConsoleSettings, RateLimits
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject
from pai_install.profile.publish import profile_object
from pai_install.schedulers.jobs import objects_of
from pai_install.schedulers.last_applied import kept_object
from tests.unit.jobs.examples import servers_and_workers, somewhere
from tests.unit.jobs.sites import research

JOBS, PODS_OF_JOB, NODES, REQUESTS = 10_000, 5, 1_000, 40
USERS = 200
ROOT = Caller("system:serviceaccount:pai-users:root", "root", CallerKind.PASSWORD, "uid", ("admins",), admin=True)


def _created(number: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_767_225_600 + 60 * number))


def jobs() -> Iterator[dict[str, Any]]:
    """Jobs of 200 users in two groups."""
    whole = dict(objects_of(servers_and_workers(), somewhere("kueue"))[0])
    for number in range(JOBS):
        space = ("vision-1", "nlp")[number % 2]
        labels = {**whole["metadata"]["labels"], "pai-install/user": f"user{number % USERS}"}
        notes = {**whole["metadata"]["annotations"], "pai-install/job-name": f"job_{number}"}
        metadata = {"name": f"job-{number}", "namespace": space, "uid": f"job-uid-{number}", "labels": labels}
        status = {"conditions": [{"type": "Completed", "status": "True"}]} if number % 3 == 0 else {}
        yield {
            **whole,
            "metadata": {**metadata, "annotations": notes, "creationTimestamp": _created(number)},
            "status": status,
        }


def pods() -> Iterator[dict[str, Any]]:
    """Pods as a kubelet reports them, with environments and volumes."""
    environment = [{"name": f"PAI_VARIABLE_{index}", "value": "x" * 40} for index in range(60)]
    for number in range(JOBS):
        for index in range(PODS_OF_JOB):
            labels = {
                "pai-install/user": f"user{number % USERS}",
                "jobset.sigs.k8s.io/jobset-name": f"job-{number}",
                "jobset.sigs.k8s.io/replicatedjob-name": "worker-v2",
                "batch.kubernetes.io/job-completion-index": str(index),
            }
            owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"job-{number}-worker-0", "controller": True}
            state = {"name": "main", "state": {"running": {}}, "ready": True, "restartCount": 0}
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"job-{number}-worker-v2-0-{index}-abcde",
                    "namespace": ("vision-1", "nlp")[number % 2],
                    "uid": f"pod-uid-{number}-{index}",
                    "labels": labels,
                    "creationTimestamp": _created(number),
                    "ownerReferences": [owner],
                },
                "spec": {
                    "nodeName": f"gpu-{(number * PODS_OF_JOB + index) % NODES}",
                    "containers": [
                        {"name": "main", "env": environment, "resources": {"limits": {"nvidia.com/gpu": "1"}}}
                    ],
                },
                "status": {
                    "phase": "Running",
                    "startTime": _created(number),
                    "podIP": "10.244.1.1",
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "containerStatuses": [state],
                },
            }


def nodes() -> Iterator[dict[str, Any]]:
    """Ready nodes with 8 GPUs."""
    for number in range(NODES):
        status = {"allocatable": {"nvidia.com/gpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"gpu-{number}"}, "spec": {}, "status": status}


def workloads() -> Iterator[dict[str, Any]]:
    """What Kueue keeps of the jobs: every fifth waits."""
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    for number in range(JOBS):
        owner = {"kind": "JobSet", "name": f"job-{number}", "controller": True}
        reserved = [{"type": "QuotaReserved", "status": "True"}] if number % 5 else []
        yield {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "Workload",
            "metadata": {
                "name": f"jobset-job-{number}",
                "namespace": ("vision-1", "nlp")[number % 2],
                "uid": f"workload-uid-{number}",
                "ownerReferences": [owner],
            },
            "spec": {
                "queueName": ("research", "default")[number % 2],
                "podSets": [{"count": PODS_OF_JOB, "template": {"spec": {"containers": [container]}}}],
            },
            "status": {"conditions": reserved},
        }


MADE = {
    "jobsets.jobset.x-k8s.io": jobs,
    "pods": pods,
    "nodes": nodes,
    "workloads.kueue.x-k8s.io": workloads,
}


@dataclass
class GeneratedCluster:
    """Makes objects as a watch asks for them, and keeps none."""

    ended: Event = field(default_factory=Event)

    def get(self, refs: Sequence[Ref]) -> tuple[JsonObject | None, ...]:
        """The profile of the site."""
        profile = research()
        kept = [profile_object(profile), kept_object(profile.require_scheduling())]
        found = {one["metadata"]["name"]: one for one in kept}
        return tuple(found.get(ref.name) for ref in refs)

    def list(self, *selects: Select) -> tuple[tuple[JsonObject, ...], ...]:
        """All objects of a kind."""
        return tuple(tuple(MADE[select.kinds[0]]()) for select in selects)

    def create(self, objects: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
        """Every review is allowed."""
        return tuple({**one, "status": {"allowed": True}} for one in objects)

    def watch(self, select: Select) -> Iterator[WatchEvent]:
        """Objects once, and no change."""
        made = MADE.get(select.kinds[0])
        for item in made() if made is not None else ():
            yield WatchEvent("ADDED", item)
        yield WatchEvent("BOOKMARK", {})
        self.ended.wait()


@dataclass
class Everyone:
    """One cluster for all callers."""

    cluster: Any

    def of(self, caller: Caller) -> ClusterClient:
        """The cluster."""
        del caller
        return self.own()

    def own(self) -> ClusterClient:
        """The cluster."""
        found: ClusterClient = self.cluster
        return found


@dataclass(frozen=True)
class Always:
    """Everybody is the administrator."""

    def authenticate(self, request: HTTPConnection) -> Caller | None:
        """The administrator."""
        del request
        return ROOT


def times_of(web: TestClient, path: str) -> dict[str, float]:
    """Milliseconds of answers, and of the processor."""
    walls, size = [], 0
    before = time.process_time()
    for _ in range(REQUESTS):
        begun = time.perf_counter()
        answer = web.get(path)
        walls.append((time.perf_counter() - begun) * 1000)
        assert answer.status_code == 200, answer.text[:200]
        size = len(answer.content)
    cpu = (time.process_time() - before) * 1000 / REQUESTS
    return {"p50": round(median(walls)), "p95": round(quantiles(walls, n=20)[-1]), "cpu": round(cpu, 1), "bytes": size}


def resident() -> int:
    """MiB of memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20


def main() -> None:
    """Measures."""
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        key.write_bytes(b"k" * 32)
        settings = ConsoleSettings(
            names=("testserver",),
            signing_key=key,
            api_server="https://api",
            api_authority=key,
            api_token=key,
            rates=RateLimits(api_per_min=10**6, list_per_min=10**6),
        )
        cluster, empty = GeneratedCluster(), resident()
        services = ConsoleServices(settings, Everyone(cluster), (Always(),), page_authenticators=(Always(),))
        begun, before = time.perf_counter(), time.process_time()
        services.model.load()
        while not services.model.is_ready:
            time.sleep(0.05)
        services.model.jobs.refresh()
        found: dict[str, Any] = {
            "load_average": os.getloadavg(),
            "jobs": len(services.model.jobs),
            "ready_s": round(time.perf_counter() - begun, 1),
            "ready_cpu_s": round(time.process_time() - before, 1),
        }
        services.model.start()
        web = TestClient(create_app(settings, services))
        for name, path in {
            "page of jobs": "/jobs",
            "page of jobs, filtered and ordered": "/jobs?state=RUNNING&keyword=99&order=jobName,ASC",
            "API default list": "/rest-server/api/v2/jobs",
            "API 100 jobs": "/rest-server/api/v2/jobs?limit=100",
            "API count": "/rest-server/api/v2/jobs?limit=0&withTotalCount=true&state=RUNNING",
            "virtual clusters": "/rest-server/api/v2/virtual-clusters",
            "page of virtual clusters": "/virtual-clusters",
            "page of one virtual cluster": "/virtual-clusters/research",
            "page of nodes": "/nodes",
            "page of one node": "/nodes/gpu-7",
            "page of health": "/health",
            "home": "/",
        }.items():
            found[name] = times_of(web, path)
        found["resident_mib"] = {"empty": empty, "full": resident()}
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
        services.model.stop()
        cluster.ended.set()


if __name__ == "__main__":
    main()
