"""Who may be touched for the first time."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.plan.observed import Observed
from pai_install.preflight.contact import CONTACT_CHECKS
from pai_install.preflight.report import PreflightReport
from pai_install.report.model import HostStatus
from pai_install.run.preflight_gate import against_all, preflight_gate

HOSTS = ("master", "one", "two")


def report(*findings: Finding) -> PreflightReport:
    return PreflightReport("site", findings, (), 2.0)


def fail(host: str, check: str = "swap") -> Finding:
    return Finding(check, Verdict.FAIL, host, f"{check} is wrong")


def test_everybody_is_let_in_where_nothing_fails() -> None:
    warning = Finding("swap", Verdict.WARN, "one", "is on")
    found = preflight_gate(report(warning), looked_at=HOSTS, planned=HOSTS, leader="master")
    assert (found.refused, found.findings) == ({}, ())
    assert {result.status for result in found.phase.hosts.values()} == {HostStatus.OK}
    assert found.phase.duration_s == 2.0


def test_every_reason_is_told_and_the_others_go_on() -> None:
    found = preflight_gate(report(fail("two"), fail("two", "ports")), looked_at=HOSTS, planned=HOSTS, leader="master")
    assert found.refused == {"two": "swap is wrong [swap]; ports is wrong [ports]"}
    assert [finding.id for finding in found.findings] == ["swap", "ports"]
    assert found.phase.hosts["one"].status is HostStatus.OK


def test_without_the_leader_nobody_is_touched() -> None:
    """Also machines that are no new_machines: their work needs the control plane."""
    found = preflight_gate(report(fail("master")), looked_at=("master", "one"), planned=HOSTS, leader="master")
    assert found.refused == {
        "master": "swap is wrong [swap]",
        "one": "preflight refused master, which the other machines need",
        "two": "preflight refused master, which the other machines need",
    }


@pytest.mark.parametrize("check", CONTACT_CHECKS)
def test_dead_machine_is_named_by_the_run_and_not_refused(check: str) -> None:
    assert preflight_gate(report(fail("master", check)), looked_at=HOSTS, planned=HOSTS, leader="master").refused == {}


def seen(name: str, identity: str, *nodes: dict[str, str]) -> Observed:
    return Observed(hostname=name, machine_id=identity, cluster={"nodes": nodes} if nodes else None)


def test_copy_of_a_machine_that_works_already_is_refused() -> None:
    unique = Finding("machine-id", Verdict.PASS, "new", "no other machine has its machine id")
    observed = {"master": seen("master", "a"), "one": seen("one", "b"), "new": seen("new", "b")}
    found = against_all(report(unique), ("new",), observed)
    assert [(item.id, item.verdict, item.subject, item.message) for item in found.findings] == [
        ("machine-id", Verdict.FAIL, "new", "one has the same machine id")
    ]
    refused = preflight_gate(found, looked_at=("new",), planned=("new",), leader="master").refused
    assert refused == {"new": "one has the same machine id [machine-id]"}


def test_nodes_that_nobody_looked_at_are_compared_too(snapshot: SnapshotAssertion) -> None:
    nodes = ({"name": "master", "machine_id": "a"}, {"name": "one", "machine_id": "b"}, {"name": "old"})
    observed = {"master": seen("master", "a", *nodes), "new": seen("new", "b"), "bare": seen("bare", "")}
    found = against_all(report(), ("new", "bare"), observed)
    assert [(item.subject, item.message) for item in found.findings] == snapshot


def test_machine_with_an_id_of_its_own_passes_and_what_is_forced_warns() -> None:
    observed = {"master": seen("master", "a"), "new": seen("new", "c", {"name": "new", "machine_id": "c"})}
    assert against_all(report(), ("new",), observed) == report()
    forced = PreflightReport("site", (), ("machine-id",), 2.0)
    twins = {"one": seen("one", "b"), "new": seen("new", "b")}
    assert [item.verdict for item in against_all(forced, ("new",), twins).findings] == [Verdict.WARN]


def test_what_preflight_has_found_itself_is_told_once() -> None:
    twin = Finding("machine-id", Verdict.FAIL, "new", "master has the same machine id", remedy="renew it")
    observed = {"master": seen("master", "a"), "new": seen("new", "a")}
    assert against_all(report(twin), ("new",), observed) == report(twin)
