"""The report as JUnit XML: one suite per machine, one case per check and device."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as ET

from pai_install.checks.finding import Finding, counts
from pai_install.checks.report.text import by_subject
from pai_install.checks.verdict import Verdict


def junit(findings: Iterable[Finding], *, name: str) -> str:
    """FAIL is a failure; SKIP and UNKNOWN are skipped with their reason; WARN passes with a text.

    name: of the whole, such as "pai-install health".
    """
    root = ET.Element("testsuites", name=name)
    for subject, found in by_subject(findings).items():
        number = counts(found)
        suite = ET.SubElement(
            root,
            "testsuite",
            name=_clean(subject),
            tests=str(len(found)),
            failures=str(number["FAIL"]),
            skipped=str(number["SKIP"] + number["UNKNOWN"]),
            errors="0",
        )
        for finding in found:
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
