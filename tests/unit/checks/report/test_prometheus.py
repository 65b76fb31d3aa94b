"""Findings as Prometheus metrics."""

from __future__ import annotations

from pai_install.checks.finding import Finding
from pai_install.checks.report.prometheus import Target, metrics
from pai_install.checks.verdict import Action, Verdict

SICK = Finding("disk-full", Verdict.FAIL, "n1", "full", remedy="clean", device='/"x"', action=Action.DRAIN)


def lines(*targets: Target) -> list[str]:
    return metrics("pai_test", targets).splitlines()


def test_a_machine_has_its_gravest_verdict_and_costliest_action() -> None:
    found = lines(Target("n1", [SICK, Finding("swap", Verdict.PASS, "n1", "off")], "gpu", 12.0))
    assert 'pai_test_verdict{machine="n1",sku="gpu",action="drain"} 3' in found
    assert 'pai_test_checks{machine="n1",verdict="FAIL"} 1' in found
    assert 'pai_test_checks{machine="n1",verdict="WARN"} 0' in found
    assert 'pai_test_collected_timestamp_seconds{machine="n1"} 12' in found


def test_a_machine_without_evidence_has_no_counts() -> None:
    found = lines(Target("gone", [SICK]))
    assert not [line for line in found if line.startswith(("pai_test_checks{", "pai_test_collected"))]


def test_a_series_stands_once_and_its_labels_are_escaped() -> None:
    found = [line for line in lines(Target("n1", [SICK, SICK])) if line.startswith("pai_test_finding{")]
    assert found == [
        'pai_test_finding{machine="n1",device="/\\"x\\"",check="disk-full",verdict="FAIL",action="drain"} 1'
    ]


def test_calm_findings_have_no_series() -> None:
    calm = [Finding("a", Verdict.PASS, "n1", "x"), Finding("b", Verdict.SKIP, "n1", "y")]
    assert not [line for line in lines(Target("n1", calm, "", 1.0)) if line.startswith("pai_test_finding{")]
