"""Published reports of sick and of well machines (reports.yaml): the exact verdicts that their outcomes ask for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from pai_install.checks.verdict import Action, Verdict, costliest, gravest
from pai_install.health.collect.collector import LogLines
from pai_install.health.evidence.document import CommandResult
from tests.golden.health.test_defects import line
from tests.unit.health.machines import NOW, Box, Texts, change, h100, healthy, smi_xml, volta

REPORTS: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "reports.yaml").read_text())
SAID = (Verdict.FAIL, Verdict.WARN)


def a40(index: int = 0) -> Texts:
    """Every text of a healthy A40: no NVSwitch, no fabric."""
    texts = {path: text for path, text in h100(index).items() if not path.startswith("fabric")}
    name = {"product_name": "NVIDIA A40", "product_architecture": "Ampere", "pci/pci_device_id": "223510DE"}
    return {**texts, **name, "fb_memory_usage/total": "46068 MiB"}


BASES = {"h100": h100, "volta": volta, "a40": a40}


def log_of(text: str) -> list[str]:
    """The lines of a report as the journal has them, a tenth of a second apart."""
    lines = text.splitlines()
    found = []
    for number, said in enumerate(lines):
        head, _, rest = said.partition(" ")
        if head.startswith("@"):
            found.append(line(rest, float(head[1:])))
        else:
            found.append(line(said, 60 + (len(lines) - number) / 10))
    return found


def with_gpus(box: Box, report: Mapping[str, Any]) -> Box:
    """The machine with the GPUs of a report."""
    base = BASES[report.get("base", "h100")]
    count = report.get("gpus", 2)
    gpus = [base(index) for index in range(count)]
    for path, text in report.get("gpu_all", {}).items():
        gpus = [change(texts, path, text) for texts in gpus]
    for path, text in report.get("gpu", {}).items():
        gpus[0] = change(gpus[0], path, text)
    return box.output("nvidia_smi_xml", smi_xml(gpus))


def machine(report: Mapping[str, Any]) -> Box:
    """The machine of a report: a healthy one but for what the report says."""
    box = healthy(report.get("gpus", 2))
    if {"base", "gpu", "gpu_all"} & set(report):
        box = with_gpus(box, report)
    for name, text in report.get("outputs", {}).items():
        box = box.output(name, text.replace("{ago30}", f"{NOW - 30:.1f}"))
    for name, (status, text) in report.get("ends", {}).items():
        box = box.command(name, CommandResult(rc=status, stdout=text, duration_s=1))
    if "nvml" in report:
        kernel = box.evidence.facts["kernel"]
        assert isinstance(kernel, dict)
        box = box.fact("kernel", {**kernel, "nvml": [report["nvml"]]})
    return box.paths(report.get("files", {})).expecting(**report.get("expecting", {}))


def verdicts(box: Box) -> set[str]:
    """Returns "VERDICT check action" of each check that warns or fails: its gravest verdict, the costliest action."""
    said: dict[str, list[tuple[Verdict, Action]]] = {}
    for finding in box.report().findings:
        if finding.verdict in SAID:
            said.setdefault(finding.id, []).append((finding.verdict, finding.action))
    found = set()
    for check, pairs in said.items():
        verdict = gravest(verdict for verdict, _ in pairs)
        action = costliest(action for one, action in pairs if one is verdict)
        found.add(f"{verdict.value} {check} {action.value}")
    return found


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report["name"])
def test_report(report: dict[str, Any]) -> None:
    box = machine(report)
    lines = log_of(report.get("log", ""))
    assert verdicts(box.log(*lines)) == set(report["expect"])
    kept = LogLines()
    kept.feed("\n".join(lines).encode())
    assert verdicts(box.log(*kept.text().splitlines())) == set(report["expect"]), "by what the collector keeps"


def test_reports_are_many_and_of_many_kinds() -> None:
    assert len({report["name"] for report in REPORTS}) == len(REPORTS) > 100
    assert len({line.split()[1] for report in REPORTS for line in report["expect"]}) > 25
    assert sum(not report["expect"] for report in REPORTS) > 25
