"""Objects of schedulers, written after the types of their CRDs; not recorded from a cluster."""

from __future__ import annotations

from typing import Any


def workload(queue: str, name: str, count: int, *, admitted: bool, **more: Any) -> dict[str, Any]:
    """Of a Job `name` in the namespace vision, of pods with 8 GPUs and 2 processors each."""
    spec = {"containers": [{"resources": {"requests": {"nvidia.com/gpu": "8", "cpu": "2"}}}]}
    status: dict[str, Any] = {"conditions": [{"type": "QuotaReserved", "status": str(admitted)}]}
    if admitted:
        status["admission"] = {"clusterQueue": queue, "podSetAssignments": []}
    if more.pop("finished", False):
        status["conditions"].append({"type": "Finished", "status": "True"})
    return {
        "kind": "Workload",
        "metadata": {
            "name": f"job-{name}-5fb1a",
            "namespace": "vision",
            "ownerReferences": [{"kind": "Job", "name": name, "controller": True}],
        },
        "spec": {"queueName": queue, "podSets": [{"name": "main", "count": count, "template": {"spec": spec}}], **more},
        "status": status,
    }


def cluster_queue(name: str, **flavors: dict[str, str]) -> dict[str, Any]:
    """flavors: flavor, with "__" for a dot -> resource -> total."""
    taken = [
        {
            "name": flavor.replace("__", "."),
            "resources": [{"name": resource, "total": total, "borrowed": "0"} for resource, total in totals.items()],
        }
        for flavor, totals in flavors.items()
    ]
    return {"kind": "ClusterQueue", "metadata": {"name": name}, "status": {"flavorsReservation": taken}}


def pod(name: str, node: str = "", phase: str = "Running", **more: Any) -> dict[str, Any]:
    """asks: resource -> request. job: its controller. notes: annotations. scheduler: its name."""
    metadata: dict[str, Any] = {"name": name, "namespace": more.get("namespace", "vision")}
    metadata["annotations"] = more.get("notes", {})
    if "job" in more:
        metadata["ownerReferences"] = [{"kind": "Job", "name": more["job"], "controller": True}]
    spec: dict[str, Any] = {"containers": [{"resources": {"requests": more.get("asks", {})}}]}
    if node:
        spec["nodeName"] = node
    spec["schedulerName"] = more.get("scheduler", "default-scheduler")
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase if node else "Pending"}}


def pod_group(name: str, queue: str, phase: str, **least: str) -> dict[str, Any]:
    """Of the Volcano Job `name`. least: minResources, with "_" for what a name cannot have."""
    return {
        "kind": "PodGroup",
        "metadata": {
            "name": f"{name}-3c4d",
            "namespace": "vision",
            "ownerReferences": [{"kind": "Job", "name": name, "controller": True}],
        },
        "spec": {"queue": queue, "minMember": 2, "minResources": least},
        "status": {"phase": phase},
    }
