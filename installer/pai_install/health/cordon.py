"""Taking sick machines out of scheduling, and giving back what was taken here; never what a person took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pai_install.findings import Verdict
from pai_install.health.nodes import KubectlCall
from pai_install.health.report import HealthReport

LABEL = "pai-install/cordoned-by-health"
_COLUMNS = '{.metadata.name}{"\\t"}{.spec.unschedulable}{"\\t"}' + "{.metadata.labels['" + LABEL + "']}"
NODES_QUERY = KubectlCall(("get", "nodes", "-o", "jsonpath={range .items[*]}" + _COLUMNS + '{"\\n"}{end}'))


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """One node: whether it takes no pods, and whether this program took it out."""

    name: str
    cordoned: bool
    ours: bool


@dataclass(frozen=True, slots=True)
class Cordoning:
    """What to do. cordon: machine -> check that is the reason. refused: sick, but too many are out already."""

    cordon: Mapping[str, str]
    release: tuple[str, ...]
    refused: tuple[str, ...]

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
    return tuple(ClusterNode(row[0], row[1] == "true", bool(row[2])) for row in rows if len(row) == 3 and row[0])


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
    out = sum(node.cordoned for node in nodes if node.name not in release)
    # 0.29 of 100 nodes are 28.999...: the share as it was meant
    room = int(max_share * len(nodes) + 1e-9) - out
    sick = [node.name for node in nodes if not node.cordoned and node.name in failing]
    taken, refused = sick[: max(room, 0)], sick[max(room, 0) :]
    return Cordoning({name: failing[name] for name in taken}, release, tuple(refused))
