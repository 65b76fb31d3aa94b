"""Findings as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from syrupy.assertion import SnapshotAssertion

from pai_install.checks.finding import Finding
from pai_install.checks.report.junit import junit
from pai_install.checks.verdict import Action, Verdict

SICK = Finding("disk-full", Verdict.FAIL, "n1", "it is full", "99 %", "< 90 %", "clean up", "/var", Action.DRAIN)
FOUND = (
    SICK,
    Finding("swap", Verdict.PASS, "n1", "off"),
    Finding("clock", Verdict.UNKNOWN, "n2", "no answer"),
    Finding("raid", Verdict.SKIP, "n2", "none here"),
    Finding("fan", Verdict.WARN, "n2", "loud"),
)


def suites() -> dict[str | None, ET.Element]:
    root = ET.fromstring(junit(FOUND, name="test"))  # noqa: S314 - our own output
    assert root.get("name") == "test"
    return {suite.get("name"): suite for suite in root}


def test_a_subject_is_a_suite_that_counts_its_cases() -> None:
    found = {
        name: {key: suite.get(key) for key in ("tests", "failures", "skipped")} for name, suite in suites().items()
    }
    assert found["n1"] == {"tests": "2", "failures": "1", "skipped": "0"}
    assert found["n2"] == {"tests": "3", "failures": "0", "skipped": "2"}


def test_what_is_unknown_is_skipped_with_its_verdict_and_never_passes() -> None:
    told = [case.findtext("skipped") is not None for case in suites()["n2"]]
    assert told == [True, True, False]
    skipped = suites()["n2"].find("testcase[@name='clock']/skipped")
    assert skipped is not None
    assert skipped.get("message") == "UNKNOWN: no answer"


def test_a_failure_names_device_action_and_remedy(snapshot: SnapshotAssertion) -> None:
    failure = suites()["n1"].find("testcase[@name='disk-full /var']/failure")
    assert failure is not None
    assert failure.get("type") == "drain"
    assert failure.text == snapshot


def test_a_warning_passes_with_a_text() -> None:
    assert (suites()["n2"].findtext("testcase[@name='fan']/system-out") or "").startswith("WARN: loud")
