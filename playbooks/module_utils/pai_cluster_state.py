"""Facts of nodes and pods and the verdicts on them, for programs on machines.

pai_install.cluster does the same on the controller host. tests/contract/test_cluster.py compares the two. A missing
value is None or empty: unknown, never good.
"""

from __future__ import annotations

from typing import Any

from ansible.module_utils.pai_finding import finding

SYSTEM_NAMESPACES = (
    *("kube-system", "kube-flannel", "pai-docker-cache", "pai-volumes"),
    *("pai-hived", "pai-jobset", "pai-logs", "pai-monitoring", "pai-volcano", "pai-console"),
    *("pai-training-operator", "pai-kueue"),
)

Facts = dict[str, Any]


def child(value: Any, *path: str) -> dict[str, Any]:
    """Returns the mapping at that path, or {}."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def rows(value: Any) -> list[dict[str, Any]]:
    """Returns the mappings in a list, or [] for any other value."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """Returns a string unchanged, and "" for any other value."""
    return value if isinstance(value, str) else ""


# by which schedulers know the machine type of a node; empty where no scheduler asks
SKU_LABEL = "pai-install/sku"


def node_facts(node: dict[str, Any]) -> Facts:
    """Returns the facts of a node. ready, cordoned: None if the API server does not report them."""
    spec, status = child(node, "spec"), child(node, "status")
    info, conditions = child(status, "nodeInfo"), rows(status.get("conditions"))
    addresses = [text(row.get("address")) for row in rows(status.get("addresses")) if row.get("type") == "InternalIP"]
    return {
        "name": text(child(node, "metadata").get("name")),
        "ready": holds(conditions, "Ready"),
        # The API server leaves the field out for a node in scheduling. Only a missing spec means unknown.
        "cordoned": bool(spec.get("unschedulable")) if isinstance(node.get("spec"), dict) else None,
        # a node that lies may report thousands
        "pressure": sorted(
            text(row.get("type"))[:63]
            for row in conditions
            if row.get("type") != "Ready" and row.get("status") == "True"
        )[:10],
        "why": next((text(row.get("message")) for row in conditions if row.get("type") == "Ready"), ""),
        "version": without_v(text(info.get("kubeletVersion"))),
        "runtime": text(info.get("containerRuntimeVersion")).replace("://", " "),
        "machine_id": text(info.get("machineID")),
        "address": next(iter(addresses), ""),
        "sku": text(child(child(node, "metadata"), "labels").get(SKU_LABEL)),
    }


def pod_facts(pod: dict[str, Any]) -> Facts:
    """Returns the facts of a pod. ready: None if the API server does not report it."""
    metadata, status = child(pod, "metadata"), child(pod, "status")
    conditions, containers = rows(status.get("conditions")), rows(status.get("containerStatuses"))
    counts = [row.get("restartCount") for row in containers]
    return {
        "name": text(metadata.get("name")),
        "namespace": text(metadata.get("namespace")),
        "node": text(child(pod, "spec").get("nodeName")),
        "phase": text(status.get("phase")),
        "ready": holds(conditions, "Ready"),
        "restarts": sum(count for count in counts if isinstance(count, int)),
        "why": why_not(status),
    }


def holds(conditions: list[dict[str, Any]], kind: str) -> bool | None:
    """Returns whether a condition is "True", or None if it is missing. "Unknown" is False."""
    # The node controller sets Unknown when a kubelet is silent, which is no good state.
    return next((row.get("status") == "True" for row in conditions if row.get("type") == kind), None)


def without_v(version: str) -> str:
    """v1.36.3 as 1.36.3."""
    return version[1:] if version.startswith("v") else version


def why_not(status: dict[str, Any]) -> str:
    """Why a pod does not run: its own words, containers that wait or failed, else conditions that do not hold."""
    states = [child(row, "state") for row in rows(status.get("containerStatuses"))]
    waiting = [reason_of(child(state, "waiting")) for state in states]
    # A container that ended with 0 is no reason: init containers end so.
    ended = [reason_of(child(state, "terminated")) for state in states if child(state, "terminated").get("exitCode")]
    broken = [text(row.get("message")) for row in rows(status.get("conditions")) if row.get("status") == "False"]
    words = [word for word in (reason_of(status), *waiting, *ended) if word]
    return "; ".join(words or [word for word in broken if word])[:400]


def reason_of(row: dict[str, Any]) -> str:
    """Reason and message."""
    return f"{text(row.get('reason'))} {text(row.get('message'))}".strip()


def pod_is_well(pod: Facts) -> bool:
    """Whether it runs and is ready, or has ended well."""
    return bool(pod["phase"] == "Succeeded" or (pod["phase"] == "Running" and pod["ready"] is True))


def has_no_image(pod: Facts) -> bool:
    """Whether its image cannot be pulled, which waiting seldom changes."""
    return bool(pod["why"].startswith(("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")))


def judge_node(name: str, node: Facts | None, version: str) -> dict[str, str]:
    """The verdict on the node that must be there, at that version."""
    if node is None:
        remedy = "run pai-install apply, and check journalctl --unit kubelet on the machine"
        return finding("node-ready", "FAIL", name, "not a node of the cluster", expected="a node", remedy=remedy)
    if node["ready"] is not True:
        value = node["why"] or "NotReady"
        remedy = "check journalctl --unit kubelet on the machine"
        return finding("node-ready", "FAIL", name, "node is not Ready", value=value, expected="Ready", remedy=remedy)
    # A node of another version works, but an upgrade stopped before it.
    if node["version"] != version:
        message = "node does not run the planned version"
        value = node["version"] or "unknown"
        return finding(
            "node-ready", "FAIL", name, message, value=value, expected=version, remedy="run pai-install upgrade"
        )
    if node["cordoned"] is not False:
        remedy = f"run kubectl uncordon {name}, once the reason is resolved"
        return finding("node-ready", "WARN", name, "node is cordoned: no new jobs start there", remedy=remedy)
    if node["pressure"]:
        pressure = ", ".join(node["pressure"])
        remedy = f"run kubectl describe node {name}. The node rejects or evicts pods while it is under pressure"
        message = f"node is Ready, but reports {pressure}"
        return finding("node-ready", "WARN", name, message, value=pressure, expected="none", remedy=remedy)
    return finding("node-ready", "PASS", name, f"node is Ready at {version}", value=version, expected=version)


def judge_pods(pods: list[Facts]) -> list[dict[str, str]]:
    """The verdicts on the pods of the system."""
    bad = [pod for pod in pods if not pod_is_well(pod)]
    if pods and not bad:
        return [finding("system-pods", "PASS", "cluster", f"all {len(pods)} system pods run")]
    if not pods:
        remedy = "run kubectl get pods --all-namespaces"
        message = "no system pods exist"
        return [finding("system-pods", "FAIL", "cluster", message, expected="Running and ready", remedy=remedy)]
    return [
        finding(
            "system-pods",
            "FAIL",
            pod["node"] or "cluster",
            f"pod {pod['namespace']}/{pod['name']} does not run",
            value=pod["why"] or pod["phase"],
            expected="Running and ready",
            remedy=f"run kubectl describe pod --namespace {pod['namespace']} {pod['name']}",
        )
        for pod in bad
    ]
