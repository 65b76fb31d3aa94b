"""Who may be touched for the first time."""

from __future__ import annotations

import pytest

from pai_install.apply.admission import admission
from pai_install.findings import Finding, Verdict
from pai_install.preflight.judge import CONTACT_CHECKS
from pai_install.preflight.report import PreflightReport
from pai_install.report.model import HostStatus

HOSTS = ("master", "one", "two")


def report(*findings: Finding) -> PreflightReport:
    return PreflightReport("site", findings, (), 2.0)


def fail(host: str, check: str = "swap") -> Finding:
    return Finding(check, Verdict.FAIL, host, f"{check} is wrong")


def test_everybody_is_let_in_where_nothing_fails() -> None:
    warning = Finding("swap", Verdict.WARN, "one", "is on")
    found = admission(report(warning), looked_at=HOSTS, planned=HOSTS, lead="master")
    assert (found.refused, found.findings) == ({}, ())
    assert {result.status for result in found.phase.hosts.values()} == {HostStatus.OK}
    assert found.phase.duration_s == 2.0


def test_every_reason_is_told_and_the_others_go_on() -> None:
    found = admission(report(fail("two"), fail("two", "ports")), looked_at=HOSTS, planned=HOSTS, lead="master")
    assert found.refused == {"two": "swap is wrong [swap]; ports is wrong [ports]"}
    assert [finding.id for finding in found.findings] == ["swap", "ports"]
    assert found.phase.hosts["one"].status is HostStatus.OK


def test_without_the_lead_nobody_is_touched() -> None:
    """Also machines that are no newcomers: their work needs the control plane."""
    found = admission(report(fail("master")), looked_at=("master", "one"), planned=HOSTS, lead="master")
    assert found.refused == {
        "master": "swap is wrong [swap]",
        "one": "master, which the others need, was refused",
        "two": "master, which the others need, was refused",
    }


@pytest.mark.parametrize("check", CONTACT_CHECKS)
def test_dead_machine_is_named_by_the_run_and_not_refused(check: str) -> None:
    assert admission(report(fail("master", check)), looked_at=HOSTS, planned=HOSTS, lead="master").refused == {}
