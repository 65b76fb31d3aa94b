"""Taking sick machines out of scheduling, and giving back what was taken here; never what a person took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Action, Verdict, gravest
from pai_install.cluster.labels import CORDONED_BY_HEALTH
from pai_install.health.nodes import KubectlCall
from pai_install.health.report import UNREACHED, HealthReport

# While these are unknown, the others say little.
_BEARERS = frozenset({"driver-responds", "driver-status", "gpu-count", "gpu-lost", "gpu-readable"})
_WARNS_OF_CORDONS = "kubernetes-ready"
LABEL = CORDONED_BY_HEALTH
_COLUMNS = '{.metadata.name}{"\\t"}{.spec.unschedulable}{"\\t"}' + "{.metadata.labels['" + LABEL + "']}"
NODES_QUERY = KubectlCall(("get", "nodes", "-o", "jsonpath={range .items[*]}" + _COLUMNS + '{"\\n"}{end}'))


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """One node: whether it takes no pods, and the check for which this program took it out, '' when it did not."""

    name: str
    cordoned: bool
    reason: str = ""

    @property
    def ours(self) -> bool:
        """Whether this program took it out."""
        return bool(self.reason)


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
    def calls(self) -> list[KubectlCall]:
        """What to tell kubectl, in order.

        A node is labelled before it is cordoned and unlabelled after it is released: a crash in between must not
        leave a cordon that looks like a person's.
        """
        found: list[tuple[str, ...]] = []
        for name, check in self.cordon.items():
            found += [("label", "node", name, f"{LABEL}={check}", "--overwrite"), ("cordon", name)]
        for name in self.release:
            found += [("uncordon", name), ("label", "node", name, f"{LABEL}-")]
        return [KubectlCall(words) for words in found]


def parse_nodes(text: str) -> tuple[ClusterNode, ...]:
    """The answer to NODES_QUERY."""
    rows = (line.split("\t") for line in text.splitlines())
    return tuple(ClusterNode(row[0], row[1] == "true", row[2]) for row in rows if len(row) == 3 and row[0])


def plan_cordons(nodes: Sequence[ClusterNode], report: HealthReport, max_share: float) -> Cordoning:
    """Cordons nodes with a FAIL that asks for more than configuration, the gravest first.

    At most `max_share` (0..1) of all nodes are out then, persons' cordons counted; of a few nodes still one, unless
    the share is 0. A node that a person cordoned is left as it is. One that was cordoned here is released when its
    machine was checked in this run, has no such FAIL, and the check that it was cordoned for passes.
    """
    failing = _failing(report)
    why_not = {
        node.name: _still_out(node.reason, machine.findings)
        for node in nodes
        for machine in report.machines
        if node.ours and node.name == machine.name and node.name not in failing
    }
    release = tuple(name for name, why in why_not.items() if not why)
    out = sum(node.cordoned for node in nodes if node.name not in release)
    # 0.29 of 100 nodes are 28.999...: the share as it was meant
    room = max(int(max_share * len(nodes) + 1e-9), 1 if max_share > 0 else 0) - out
    sick = [node.name for node in nodes if not node.cordoned and node.name in failing]
    sick.sort(key=lambda name: -failing[name].action.rank)
    taken, refused = sick[: max(room, 0)], sick[max(room, 0) :]
    kept = {name: why for name, why in why_not.items() if why}
    return Cordoning({name: failing[name].id for name in taken}, release, tuple(refused), kept)


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
