"""Findings as JUnit XML: one suite per subject, one case per check and device. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from xml.etree import ElementTree as ET

from pai_install.checks.finding import Finding
from pai_install.checks.report.text import by_subject
from pai_install.checks.verdict import Verdict

_NOT_MADE = (Verdict.SKIP, Verdict.UNKNOWN)


def junit(findings: Iterable[Finding], *, name: str) -> str:
    """Returns JUnit XML. FAIL is a failure, SKIP and UNKNOWN are skipped with a reason, WARN passes with a text."""
    root = ET.Element("testsuites", name=name)
    for subject, of_subject in by_subject(findings).items():
        suite = _suite(root, subject, of_subject)
        for finding in of_subject:
            _case(suite, finding)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(root: ET.Element, subject: str, findings: Collection[Finding]) -> ET.Element:
    return ET.SubElement(
        root,
        "testsuite",
        name=_clean(subject),
        tests=str(len(findings)),
        failures=str(sum(finding.verdict is Verdict.FAIL for finding in findings)),
        skipped=str(sum(finding.verdict in _NOT_MADE for finding in findings)),
        errors="0",
    )


def _case(suite: ET.Element, finding: Finding) -> None:
    name = f"{finding.id} {finding.device}".strip()
    case = ET.SubElement(suite, "testcase", classname=_clean(finding.subject), name=_clean(name))
    detail = f"{finding.message}\nvalue: {finding.value}\nexpected: {finding.expected}\nwhat to do: {finding.remedy}"
    if finding.verdict is Verdict.FAIL:
        failure = ET.SubElement(case, "failure", message=_clean(finding.message), type=finding.action.value)
        failure.text = _clean(detail)
    elif finding.verdict in _NOT_MADE:
        ET.SubElement(case, "skipped", message=_clean(f"{finding.verdict.value}: {finding.message}"))
    elif finding.verdict is Verdict.WARN:
        ET.SubElement(case, "system-out").text = _clean(f"WARN: {detail}")


def _clean(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return "".join(char for char in text if char in "\t\n" or (char >= " " and char not in "\ufffe\uffff"))
