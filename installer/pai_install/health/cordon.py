"""Taking sick machines out of scheduling, and giving back what was taken here; never what a person took."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pai_install.findings import Verdict
from pai_install.health.report import HealthReport

LABEL = "pai-install/cordoned-by-health"
# kubectl's arguments in, its standard output out. Raises PaiError when it fails.
Kubectl = Callable[[Sequence[str]], str]


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """One node: whether it takes pods, and whether this program took it out."""

    name: str
    cordoned: bool
    ours: bool


@dataclass(frozen=True, slots=True)
class Cordoning:
    """What to do. cordon: machine -> check that is the reason. refused: sick, but too many are out already."""

    cordon: Mapping[str, str]
    release: tuple[str, ...]
    refused: tuple[str, ...]


def parse_nodes(text: str) -> tuple[ClusterNode, ...]:
    """The nodes in `kubectl get nodes -o json`."""
    return tuple(
        ClusterNode(
            item["metadata"]["name"],
            bool(item.get("spec", {}).get("unschedulable")),
            LABEL in item["metadata"].get("labels", {}),
        )
        for item in json.loads(text)["items"]
    )


def plan_cordons(nodes: Sequence[ClusterNode], report: HealthReport, max_share: float) -> Cordoning:
    """Cordons nodes with a FAIL while at most `max_share` (0..1) of all nodes are out, persons' cordons counted.

    A node that a person cordoned is left as it is. One that was cordoned here is released when its machine was
    checked in this run and has no FAIL.
    """
    failing: dict[str, str] = {}
    for finding in report.of(Verdict.FAIL):
        failing.setdefault(finding.machine, finding.check)
    checked = {machine.name for machine in report.machines}
    release = tuple(node.name for node in nodes if node.ours and node.name in checked and node.name not in failing)
    room = int(max_share * len(nodes)) - sum(node.cordoned for node in nodes) + len(release)
    sick = [node.name for node in nodes if not node.cordoned and node.name in failing]
    taken, refused = sick[: max(room, 0)], sick[max(room, 0) :]
    return Cordoning({name: failing[name] for name in taken}, release, tuple(refused))


def carry_out(plan: Cordoning, kubectl: Kubectl) -> None:
    """Labels and cordons, releases and unlabels. Raises PaiError when kubectl fails."""
    for name, check in plan.cordon.items():
        # the label first: a crash in between must not leave a cordon that looks like a person's
        kubectl(["label", "node", name, f"{LABEL}={check}", "--overwrite"])
        kubectl(["cordon", name])
    for name in plan.release:
        kubectl(["uncordon", name])
        kubectl(["label", "node", name, f"{LABEL}-"])
