"""The report as JUnit XML: one suite per machine, one case per check and device."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.health.report import HealthReport


def junit(report: HealthReport) -> str:
    """FAIL is a failure; SKIP and UNKNOWN are skipped with their reason; WARN passes with a text."""
    root = ET.Element("testsuites", name="pai-install health")
    by_machine: dict[str, list[Finding]] = {}
    for finding in report.findings:
        by_machine.setdefault(finding.subject, []).append(finding)
    for machine, findings in by_machine.items():
        failures = sum(finding.verdict is Verdict.FAIL for finding in findings)
        skipped = sum(finding.verdict in (Verdict.SKIP, Verdict.UNKNOWN) for finding in findings)
        suite = ET.SubElement(
            root,
            "testsuite",
            name=_clean(machine),
            tests=str(len(findings)),
            failures=str(failures),
            skipped=str(skipped),
            errors="0",
        )
        for finding in findings:
            _case(suite, finding)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, finding: Finding) -> None:
    name = f"{finding.id} {finding.device}".strip()
    case = ET.SubElement(suite, "testcase", classname=_clean(finding.subject), name=_clean(name))
    detail = f"{finding.message}\nvalue: {finding.value}\nexpected: {finding.expected}\nwhat to do: {finding.remedy}"
    if finding.verdict is Verdict.FAIL:
        failure = ET.SubElement(case, "failure", message=_clean(finding.message), type=finding.action.value)
        failure.text = _clean(detail)
    elif finding.verdict in (Verdict.SKIP, Verdict.UNKNOWN):
        ET.SubElement(case, "skipped", message=_clean(f"{finding.verdict.value}: {finding.message}"))
    elif finding.verdict is Verdict.WARN:
        ET.SubElement(case, "system-out").text = _clean(f"WARN: {detail}")


def _clean(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return "".join(char for char in text if char in "\t\n" or (char >= " " and char not in "\ufffe\uffff"))
