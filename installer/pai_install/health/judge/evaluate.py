"""Runs every check on every machine: evidence in, findings out. Pure. It holds the evidence of one machine
at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pai_install.checks.evidence import NotObservedError
from pai_install.checks.finding import Finding, worst
from pai_install.checks.limits import Limits
from pai_install.checks.result import Result, skipped, unknown
from pai_install.checks.runner import ODD, broken, results
from pai_install.checks.verdict import CALM, Action, Verdict, costliest
from pai_install.health.evidence.document import HealthEvidence
from pai_install.health.evidence.parse.host import parse_kubernetes_nodes
from pai_install.health.judge.check import FleetCheck
from pai_install.health.judge.expectation import Expectation
from pai_install.health.judge.facts import facts_of, snapshot_of
from pai_install.health.judge.fleet import HealthFleet, MachineFacts
from pai_install.health.judge.gpu_view import GpuView
from pai_install.health.judge.meaning import XidMeaning
from pai_install.health.judge.rules import CHECKS, FLEET_CHECKS, GPU_CHECKS, MACHINE_CHECKS
from pai_install.health.judge.view import MachineView
from pai_install.health.memory.snapshot import Baseline, Snapshot
from pai_install.kube.model import Node


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Inputs of verdicts besides the evidence, by machine name except for limits and catalogue."""

    limits: Limits
    catalogue: Mapping[int, XidMeaning]
    expected: Mapping[str, Expectation] = field(default_factory=dict)
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    history: Mapping[str, Sequence[Snapshot]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MachineReport:
    """The findings of one machine, and the snapshot for the next run."""

    name: str
    sku: str
    collected_at: float
    findings: tuple[Finding, ...]
    snapshot: Snapshot | None = None

    @property
    def verdict(self) -> Verdict:
        """The gravest verdict."""
        return worst(self.findings)

    @property
    def action(self) -> Action:
        """The costliest action that a FAIL asks for."""
        return costliest(finding.action for finding in self.findings if finding.verdict is Verdict.FAIL)


def machine_view(evidence: HealthEvidence, knowledge: Knowledge) -> MachineView:
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


def judge_machine(machine: MachineView) -> Iterator[Finding]:
    """Every check of one machine and its GPUs."""
    applies, record = machine.has_nvidia, machine.record
    for check in MACHINE_CHECKS:
        record.begin()
        answers = (
            results(check.judge, machine)
            if applies or not check.gpus_only
            else (skipped("no NVIDIA GPU on this machine"),)
        )
        for result in answers:
            settled = record.settle(result)
            yield check.finding(machine.name, settled, source=record.source, evidence=record.evidence)
    for gpu in machine.gpus:
        yield from _judge_gpu(gpu, machine)
    if applies and not machine.gpus:
        for gpu_check in GPU_CHECKS:
            yield gpu_check.finding(machine.name, unknown("no GPU could be read"), evidence="nvidia_smi_xml")


def _judge_gpu(gpu: GpuView, machine: MachineView) -> Iterator[Finding]:
    own, shared = gpu.record, machine.record
    for check in GPU_CHECKS:
        own.begin()
        shared.begin()
        try:
            answer = check.judge(gpu, machine)
        except NotObservedError as gap:
            answer = gap.result
        except ODD as error:
            answer = broken(error)
        result = shared.settle(own.settle(answer))
        read = ""
        if result.verdict not in CALM:
            read = ", ".join(part for part in (own.evidence, shared.evidence) if part)
        yield check.finding(machine.name, result, device=gpu.bus_id, source=shared.source, evidence=read)


def evaluate(evidence: Iterable[HealthEvidence], knowledge: Knowledge) -> list[MachineReport]:
    """Reports of all machines, in the order of the evidence, those of the comparison included."""
    reports: list[MachineReport] = []
    facts: list[MachineFacts] = []
    nodes: dict[str, Node] | None = None
    gap = ""
    # of the cluster only the layout's control planes are believed; evidence from a file may come without a layout
    witnesses = {name for name, expected in knowledge.expected.items() if expected.control_plane}
    for item in evidence:
        view = machine_view(item, knowledge)
        report, traits = _judged(view, item)
        reports.append(report)
        facts += [traits] if traits else []
        if witnesses and view.name not in witnesses:
            continue
        if view.available("kubernetes_nodes"):
            nodes = (nodes or {}) | parse_kubernetes_nodes(item.commands["kubernetes_nodes"].stdout)
        else:
            gap = gap or _nodes_gap(view, item)
    extra = compare(HealthFleet(tuple(facts), nodes, knowledge.limits, gap))
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


def _judged(view: MachineView, evidence: HealthEvidence) -> tuple[MachineReport, MachineFacts | None]:
    """Returns one machine's report, and its traits for the comparison. An exception affects only this machine."""
    try:
        findings = tuple(judge_machine(view))
        snapshot, traits = snapshot_of(view, findings), facts_of(view)
    except (NotObservedError, *ODD) as error:
        findings = (CHECKS["host-evidence"].finding(view.name, broken(error)),)
        snapshot, traits = None, None
    return MachineReport(view.name, view.expected.sku, evidence.collected_at, findings, snapshot), traits


def _nodes_gap(view: MachineView, evidence: HealthEvidence) -> str:
    """Why a control plane that was asked for its nodes did not name them, '' where none was asked."""
    if "kubernetes_nodes" not in evidence.commands:
        return ""
    try:
        view.output("kubernetes_nodes")
    except NotObservedError as gap:
        return f"{evidence.machine}: {gap.reason}"
    return ""


def compare(fleet: HealthFleet) -> dict[str, list[Finding]]:
    """Machine -> findings of the checks over all machines."""
    found: dict[str, list[Finding]] = {}
    for check in FLEET_CHECKS:
        for machine, result in _compared(check, fleet):
            found.setdefault(machine, []).append(check.finding(machine, result))
    return found


def _compared(check: FleetCheck, fleet: HealthFleet) -> list[tuple[str, Result]]:
    """Returns the results of a check. If the check raises, every machine gets that error instead of partial results."""
    try:
        return list(check.judge(fleet))
    except ODD as error:
        return [(machine.name, broken(error)) for machine in fleet.machines]
