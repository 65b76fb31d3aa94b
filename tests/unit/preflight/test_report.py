"""What is printed: exit code, JSON as published, text that groups and names."""

from __future__ import annotations

import json

import jsonschema  # type: ignore[import-untyped]
import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.finding import Finding, counts
from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode
from pai_install.json_schema import schema_of
from pai_install.preflight.catalogue import CATALOGUE
from pai_install.preflight.document import PreflightDocument, preflight_document
from pai_install.preflight.judge import judge
from pai_install.preflight.report import PreflightReport, text
from pai_install.site import Site
from tests.unit.preflight.machines import fleet

FULL = Finding("disk-space", Verdict.FAIL, "one", "too little", "0 B", "10 GiB", "free some")
WARM = Finding("cgroups", Verdict.WARN, "one", "version 1", "1", "2", "boot otherwise")
FINE = Finding("sudo", Verdict.PASS, "two", "can act as root")
SOURCE = Finding("component-source", Verdict.PASS, "controller host", "every component is in the cache")


def report(*findings: Finding, forced: tuple[str, ...] = ()) -> PreflightReport:
    return PreflightReport("cluster", findings, forced, 3.21)


@pytest.mark.parametrize(
    ("findings", "code"),
    [
        ((), ExitCode.OK),
        ((FINE, WARM), ExitCode.OK),
        ((Finding("swap", Verdict.UNKNOWN, "one", "no evidence"),), ExitCode.OK),
        ((FINE, FULL, WARM), ExitCode.PREFLIGHT_FAILED),
    ],
)
def test_exit_code(findings: tuple[Finding, ...], code: ExitCode) -> None:
    assert report(*findings).exit_code is code
    assert preflight_document(report(*findings)).as_json()["exit_code"] == code


def test_json() -> None:
    data = preflight_document(report(SOURCE, FULL, WARM, FINE, forced=("hostname",))).as_json()
    assert data["machines"] == {"one": "FAIL", "two": "PASS"}
    assert data["verdicts"] == {"FAIL": 1, "UNKNOWN": 0, "WARN": 1, "PASS": 2, "SKIP": 0}
    assert data["forced"] == ["hostname"]
    assert data["duration_s"] == 3.21
    assert [finding["id"] for finding in data["findings"]] == ["component-source", "disk-space", "cgroups", "sudo"]


def test_json_is_as_published(site: Site) -> None:
    check = jsonschema.Draft202012Validator(schema_of(PreflightDocument))
    for one in (report(), report(SOURCE, FULL, WARM, FINE), report(*judge(site, fleet(), {}))):
        check.validate(json.loads(json.dumps(preflight_document(one).as_json())))
    with pytest.raises(jsonschema.ValidationError):
        check.validate({**preflight_document(report()).as_json(), "more": 1})


def test_text(snapshot: SnapshotAssertion) -> None:
    assert text(report(SOURCE, WARM, FULL, FINE)) == snapshot


def test_text_of_everything_shows_what_is_right(snapshot: SnapshotAssertion) -> None:
    assert "can act as root" not in text(report(FINE))
    assert text(report(FINE), everything=True) == snapshot
    assert text(report(FINE)).endswith("ready to install: 1 machine checked in 3 s, 0 warnings\n")


def test_alike_findings_are_told_once_and_cut(snapshot: SnapshotAssertion) -> None:
    many = [Finding("swap", Verdict.WARN, f"m{number}", "swap is on", "/dev/sda3") for number in range(9)]
    told = text(report(*many))
    assert told.count("swap is on") == 1
    assert told == snapshot


def test_forced_checks_are_named(snapshot: SnapshotAssertion) -> None:
    told = text(report(FINE, forced=("hostname", "swap")))
    assert told == snapshot


def test_counts_of_nothing() -> None:
    assert counts([]) == dict.fromkeys(("FAIL", "UNKNOWN", "WARN", "PASS", "SKIP"), 0)


def test_the_catalogue_has_every_check_that_speaks(site: Site) -> None:
    assert {finding.id for finding in judge(site, fleet(), {})} <= set(CATALOGUE)
