"""Taking sick machines out of scheduling, and giving back what was taken here; never what a person took."""

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
    """What to do. cordon: machine -> check that is the reason. refused: sick, but too many are out already.

    kept: cordoned here and not released, although nothing fails that would cordon it -> why not.
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
    """The check for which this program took a node out; "" when it did not."""
    return node.labels.get(LABEL, "")


def plan_cordons(nodes: Sequence[Node], report: HealthReport, max_share: float) -> Cordoning:
    """Cordons nodes with a FAIL that asks for more than configuration, the gravest first.

    At most `max_share` (0..1) of all nodes are out then, persons' cordons counted; of a few nodes still one, unless
    the share is 0. A node that a person cordoned is left as it is. One that was cordoned here is released when its
    machine was checked in this run, has no such FAIL, and the check that it was cordoned for passes.
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
    """The findings, those that a person has acknowledged as passed: they keep no machine out of work."""
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
    """Why a machine that was cordoned for the check `reason` is not known to be well again; '' when it is."""
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
