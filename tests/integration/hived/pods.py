"""A site of two teams with two machines of four devices, and pods of theirs as jobs make them."""

from __future__ import annotations

from typing import Any

from tests.virtual_clusters import cluster, gpus, share, site, with_backend

Json = dict[str, Any]
MARKER = "hivedscheduler.microsoft.com/pod-scheduling-enable"
SPEC = "hivedscheduler.microsoft.com/pod-scheduling-spec"
ISOLATION = "metadata.annotations['hivedscheduler.microsoft.com/pod-leaf-cell-isolation']"
SUPPLY = gpus("a100", 2, 4)
TEAMS = ("research", "product")
SITE = with_backend(
    site(
        SUPPLY,
        clusters=(cluster("research", share(SUPPLY, 4)), cluster("product", share(SUPPLY, 4), highest="prod")),
    ),
    "hived",
)


def annotation(team: str, priority: int, devices: int, gang: tuple[str, int] | None = None) -> str:
    """HiveD's annotation; gang: its name and how many pods it has."""
    lines = [f"virtualCluster: {team}", f"priority: {priority}", "leafCellType: a100", f"leafCellNumber: {devices}"]
    lines.append("ignoreK8sSuggestedNodes: false")
    if gang:
        members = ["  members:", f"  - podNumber: {gang[1]}", f"    leafCellNumber: {devices}"]
        lines += ["affinityGroup:", f"  name: {team}.{gang[0]}", *members]
    return "\n".join(lines)


def pod(name: str, team: str, priority: int = 10, devices: int = 1, gang: tuple[str, int] | None = None) -> Json:
    """A pod that all policies let pass."""
    classes = {-1: "oppo", 10: "test", 100: "prod", 120: "crit"}
    devices_of_it = {"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"fieldRef": {"fieldPath": ISOLATION}}}
    container = {"name": "main", "image": "none", "resources": {"limits": {MARKER: "1"}}, "env": [devices_of_it]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": team,
            "annotations": {SPEC: annotation(team, priority, devices, gang)},
        },
        "spec": {
            "schedulerName": f"hivedscheduler-ds-{team}",
            "priorityClassName": classes[priority],
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        },
    }
