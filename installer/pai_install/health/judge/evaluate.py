"""Evidence in, findings out: runs every check over every machine. Pure; one machine's evidence is held at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pai_install.checks.limits import Limits
from pai_install.checks.verdict import Verdict
from pai_install.health.evidence.document import Evidence
from pai_install.health.evidence.parse.host import KubernetesNode, parse_kubernetes_nodes
from pai_install.health.judge.check import MachineJudge
from pai_install.health.judge.expectation import Expectation
from pai_install.health.judge.facts import facts_of, snapshot_of
from pai_install.health.judge.fleet import Fleet, MachineFacts
from pai_install.health.judge.gpu_view import GpuView
from pai_install.health.judge.rules import FLEET_CHECKS, GPU_CHECKS, MACHINE_CHECKS
from pai_install.health.judge.view import MachineView
from pai_install.health.judge.xid import XidMeaning
from pai_install.health.memory.snapshot import Baseline, Snapshot
from pai_install.health.model import Action, CheckText, HealthFinding, Judgement, NotObservedError, skipped, unknown

_GRAVITY = {Verdict.FAIL: 4, Verdict.UNKNOWN: 3, Verdict.WARN: 2, Verdict.PASS: 1, Verdict.SKIP: 0}
_CALM = (Verdict.PASS, Verdict.SKIP)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What verdicts rest on besides the evidence. All but limits and catalogue by machine name."""

    limits: Limits
    catalogue: Mapping[int, XidMeaning]
    expected: Mapping[str, Expectation] = field(default_factory=dict)
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    history: Mapping[str, Sequence[Snapshot]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MachineReport:
    """One machine: its findings, and what the next run needs."""

    name: str
    sku: str
    collected_at: float
    findings: tuple[HealthFinding, ...]
    snapshot: Snapshot | None = None

    @property
    def verdict(self) -> Verdict:
        """The gravest verdict."""
        return gravest(finding.verdict for finding in self.findings)

    @property
    def action(self) -> Action:
        """The costliest action that a FAIL asks for."""
        actions = [finding.action for finding in self.findings if finding.verdict is Verdict.FAIL]
        return max(actions, key=lambda action: action.rank, default=Action.NONE)


def gravest(verdicts: Iterable[Verdict]) -> Verdict:
    """FAIL, UNKNOWN, WARN, PASS, SKIP in this order; SKIP for nothing at all."""
    return max(verdicts, key=lambda verdict: _GRAVITY[verdict], default=Verdict.SKIP)


def machine_view(evidence: Evidence, knowledge: Knowledge) -> MachineView:
    """One machine with everything its checks may look at."""
    name = evidence.machine
    return MachineView(
        evidence,
        limits=knowledge.limits,
        catalogue=knowledge.catalogue,
        expected=knowledge.expected.get(name),
        baseline=knowledge.baselines.get(name),
        # saved evidence may be older than what is remembered, and a run may have had a wrong clock
        history=sorted(
            (item for item in knowledge.history.get(name, ()) if item.time < evidence.collected_at),
            key=lambda item: item.time,
        ),
    )


def judge_machine(machine: MachineView) -> Iterator[HealthFinding]:
    """Every check of one machine and its GPUs."""
    applies = machine.has_nvidia
    for check in MACHINE_CHECKS:
        machine.begin()
        if check.gpus_only and not applies:
            judgements: Iterable[Judgement] = (skipped("no NVIDIA GPU here"),)
        else:
            judgements = _guarded(check.judge, machine)
        for judgement in judgements:
            settled = machine.settle(judgement)
            yield _finding(check.text, machine.name, settled, machine.evidence, machine.threshold_source)
    for gpu in machine.gpus:
        yield from _judge_gpu(gpu, machine)
    if applies and not machine.gpus:
        for gpu_check in GPU_CHECKS:
            yield _finding(gpu_check.text, machine.name, unknown("no GPU could be asked"), "nvidia_smi_xml", "")


def _judge_gpu(gpu: GpuView, machine: MachineView) -> Iterator[HealthFinding]:
    for check in GPU_CHECKS:
        machine.begin()
        gpu.begin()
        try:
            judgement = machine.settle(gpu.settle(check.judge(gpu, machine)))
        except NotObservedError as gap:
            judgement = Judgement(gap.verdict, gap.reason)
        read = ""
        if judgement.verdict not in _CALM:
            read = ", ".join(part for part in (gpu.evidence, machine.evidence) if part)
        yield _finding(check.text, machine.name, judgement, read, machine.threshold_source, gpu.bus_id)


def _guarded(judge: MachineJudge, machine: MachineView) -> Iterable[Judgement]:
    try:
        result = judge(machine)
        return (result,) if isinstance(result, Judgement) else list(result)
    except NotObservedError as gap:
        return (Judgement(gap.verdict, gap.reason),)


def _finding(
    text: CheckText, machine: str, judgement: Judgement, evidence: str, source: str, device: str = ""
) -> HealthFinding:
    sick = judgement.verdict in (Verdict.FAIL, Verdict.WARN)
    action = judgement.action if judgement.action is not None else text.action
    return HealthFinding(
        check=text.id,
        machine=machine,
        device=judgement.device or device,
        verdict=judgement.verdict,
        message=judgement.message or text.title,
        value=judgement.value,
        expected=judgement.expected,
        threshold_source=source or text.source,
        evidence=evidence or text.reads,
        remedy=judgement.remedy or (text.remedy if sick else ""),
        action=action if sick else Action.NONE,
    )


def evaluate(evidence: Iterable[Evidence], knowledge: Knowledge) -> list[MachineReport]:
    """Reports of all machines, in the order of the evidence, those of the comparison included."""
    reports: list[MachineReport] = []
    facts: list[MachineFacts] = []
    nodes: dict[str, KubernetesNode] | None = None
    gap = ""
    for item in evidence:
        view = machine_view(item, knowledge)
        findings = tuple(judge_machine(view))
        facts.append(facts_of(view))
        reports.append(
            MachineReport(view.name, view.expected.sku, item.collected_at, findings, snapshot_of(view, findings))
        )
        if view.available("kubernetes_nodes"):
            nodes = (nodes or {}) | parse_kubernetes_nodes(item.commands["kubernetes_nodes"].stdout)
        else:
            gap = gap or _nodes_gap(view, item)
    extra = compare(Fleet(tuple(facts), nodes, knowledge.limits, gap))
    return [
        MachineReport(
            report.name,
            report.sku,
            report.collected_at,
            report.findings + tuple(extra.get(report.name, ())),
            report.snapshot,
        )
        for report in reports
    ]


def _nodes_gap(view: MachineView, evidence: Evidence) -> str:
    """Why a control plane that was asked for its nodes did not name them, '' where none was asked."""
    if "kubernetes_nodes" not in evidence.commands:
        return ""
    try:
        view.output("kubernetes_nodes")
    except NotObservedError as gap:
        return f"{evidence.machine}: {gap.reason}"
    return ""


def compare(fleet: Fleet) -> dict[str, list[HealthFinding]]:
    """Machine -> findings of the checks over all machines."""
    found: dict[str, list[HealthFinding]] = {}
    for check in FLEET_CHECKS:
        for machine, judgement in check.judge(fleet):
            found.setdefault(machine, []).append(_finding(check.text, machine, judgement, check.text.reads, ""))
    return found
