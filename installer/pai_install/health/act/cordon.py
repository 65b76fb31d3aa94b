"""Cordons unhealthy nodes, and uncordons nodes that pai-install cordoned. Cordons of people stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Action, Verdict, gravest
from pai_install.health.memory.acknowledgement import key_of
from pai_install.health.report import UNREACHED, HealthReport
from pai_install.kube.labels import CORDONED_BY_HEALTH
from pai_install.kube.model import Node

# While these are unknown, the others say little.
_BEARERS = frozenset({"driver-responds", "driver-status", "gpu-count", "gpu-lost", "gpu-readable"})
_WARNS_OF_CORDONS = "kubernetes-ready"
LABEL = CORDONED_BY_HEALTH


@dataclass(frozen=True, slots=True)
class Cordoning:
    """Planned changes. cordon: machine -> check with the cause. refused: unhealthy, but the limit of cordoned nodes is
    reached.

    kept: machine -> why it stays cordoned although no check fails that would cordon it.
    """

    cordon: Mapping[str, str]
    release: tuple[str, ...]
    refused: tuple[str, ...]
    kept: Mapping[str, str] = field(default_factory=dict)

    @property
    def changes(self) -> dict[str, dict[str, Any]]:
        """Node -> its merge patch. Mark and cordon are one change: without its mark a cordon looks like a person's."""
        taken = {name: _mark(check, unschedulable=True) for name, check in self.cordon.items()}
        given_back = {name: _mark(None, unschedulable=None) for name in self.release}
        return {**taken, **given_back}


def _mark(check: str | None, *, unschedulable: bool | None) -> dict[str, Any]:
    return {"metadata": {"labels": {LABEL: check}}, "spec": {"unschedulable": unschedulable}}


def reason_of(node: Node) -> str:
    """Returns the check for which pai-install cordoned a node, or ""."""
    return node.labels.get(LABEL, "")


def plan_cordons(nodes: Sequence[Node], report: HealthReport, max_share: float) -> Cordoning:
    """Plans cordons of nodes with a FAIL that needs more than configuration, worst first.

    At most `max_share` (0..1) of all nodes are cordoned then, including cordons of people, but at least one node unless
    the share is 0. Nodes that a person cordoned stay unchanged. A node that pai-install cordoned is released if its
    machine was checked in this run, has no such FAIL, and passes the check of its cordon.
    """
    failing = _failing(report)
    why_not = {
        node.name: _still_out(reason_of(node), _unjudged(machine.findings, report))
        for node in nodes
        for machine in report.machines
        if reason_of(node) and node.name == machine.name and node.name not in failing
    }
    release = tuple(name for name, why in why_not.items() if not why)
    out = sum(node.cordoned is not False for node in nodes if node.name not in release)
    # 0.29 of 100 nodes are 28.999...: the share as it was meant
    room = max(int(max_share * len(nodes) + 1e-9), 1 if max_share > 0 else 0) - out
    sick = [node.name for node in nodes if node.cordoned is False and node.name in failing]
    sick.sort(key=lambda name: -failing[name].action.rank)
    taken, refused = sick[: max(room, 0)], sick[max(room, 0) :]
    kept = {name: why for name, why in why_not.items() if why}
    return Cordoning({name: failing[name].id for name in taken}, release, tuple(refused), kept)


def _unjudged(findings: Sequence[Finding], report: HealthReport) -> list[Finding]:
    """Returns the findings with acknowledged ones as passed, so that they cordon no machine."""
    passed = Verdict.PASS
    return [item._replace(verdict=passed) if key_of(item) in report.acknowledged else item for item in findings]


def _failing(report: HealthReport) -> dict[str, Finding]:
    """Machine -> its gravest FAIL that asks for more than configuration."""
    found: dict[str, Finding] = {}
    for finding in report.of(Verdict.FAIL):
        before = found.get(finding.subject)
        if finding.action.rank > Action.CONFIG.rank and (before is None or finding.action.rank > before.action.rank):
            found[finding.subject] = finding
    return found


def _still_out(reason: str, findings: Sequence[Finding]) -> str:
    """Returns why a machine with a cordon for check `reason` is not known to be healthy, or ""."""
    hidden = sorted({item.id for item in findings if item.verdict is Verdict.UNKNOWN and item.id in _BEARERS})
    if hidden:
        return f"{hidden[0]} is {Verdict.UNKNOWN}"
    if reason == UNREACHED:
        return ""
    verdicts = {item.verdict for item in findings if item.id == reason}
    well = {Verdict.PASS, Verdict.WARN} if reason == _WARNS_OF_CORDONS else {Verdict.PASS}
    if verdicts & well and verdicts <= well | {Verdict.SKIP}:
        return ""
    return f"{reason} is {gravest(verdicts)}"
