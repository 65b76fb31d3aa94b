"""How a site stands, word by word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode
from pai_install.report.data import run_report
from pai_install.report.site_status import LastRun, SiteStatus, last_run_of, state_of, status_text
from pai_install.report.status import status_report
from pai_install.site.load import load_site
from pai_install.site.summary import roles
from tests.unit.cli.stub_environment import LAYOUT, write_site
from tests.unit.report.outcomes import FINE, TROUBLED


@pytest.fixture
def site(tmp_path: Path) -> Any:
    write_site(tmp_path / "site")
    layout = LAYOUT.replace("hostname: two,", "hostname: two, absent: true,").replace(
        'hostip: 10.0.0.2, machine-type: cpu, pai-worker: "true"',
        'hostip: 10.0.0.2, machine-type: cpu, pai-worker: "true", pai-storage: "true"',
    )
    (tmp_path / "site" / "layout.yaml").write_text(layout)
    return load_site(tmp_path / "site").site


def verdicts(**of: str) -> tuple[Finding, ...]:
    return tuple(Finding("node-ready", Verdict(v), name, f"says {v}") for name, v in of.items())


def test_state_of_each_kind_of_machine(site: Any, kit: Any) -> None:
    plan = kit.plan(unreachable={"one": "gone"})
    assert [state_of(machine, SiteStatus(site)) for machine in site.machines] == [
        "not observed", "not observed", "absent",
    ]  # fmt: skip
    seen = SiteStatus(site, plan, verdicts(master="PASS", one="FAIL"))
    assert [state_of(machine, seen) for machine in site.machines] == ["says PASS", "not reached", "absent"]
    assert state_of(site.machines[0], SiteStatus(site, kit.plan(), ())) == "answers"


def test_trouble_hides_the_good_news_of_a_machine(site: Any, kit: Any) -> None:
    both = (*verdicts(master="PASS"), Finding("time", Verdict.WARN, "master", "2 s off"))
    assert state_of(site.machines[0], SiteStatus(site, kit.plan(), both)) == "2 s off"


def test_trouble_does_not_hide_until_when_certificates_are_valid(
    site: Any, kit: Any, snapshot: SnapshotAssertion
) -> None:
    certificates = Finding("certificates", Verdict.PASS, "master", "certificates valid until 2027-11-21")
    status = SiteStatus(site, kit.plan(), (certificates, *verdicts(master="FAIL")))
    assert state_of(site.machines[0], status) == snapshot


def test_versions_stand_beside_the_state(site: Any, kit: Any, snapshot: SnapshotAssertion) -> None:
    seen = {"master": {"kubernetes": "1.36.3", "os": "debian 13"}}
    text = status_text(SiteStatus(site, kit.plan(), verdicts(master="PASS"), versions=seen))
    assert text == snapshot
    assert status_report(SiteStatus(site, kit.plan(), versions=seen)).machines[0].versions == seen["master"]


def test_a_half_upgraded_cluster_has_an_upgrade_left_and_no_drift_in_the_store(
    site: Any, kit: Any, snapshot: SnapshotAssertion
) -> None:
    store, base = kit.phase("components", "master"), kit.phase("base", "one")
    left = Finding("upgrade-left", Verdict.WARN, "cluster", "an upgrade is under way")
    half = SiteStatus(site, kit.plan(store), (left,))
    assert half.drift == {}
    assert status_text(half) == snapshot
    assert "matches the site" not in status_text(half)
    assert list(SiteStatus(site, kit.plan(store, base), (left,)).drift) == ["one"], "other drift is told"
    assert list(SiteStatus(site, kit.plan(store), ()).drift) == ["master"]


def test_roles_in_words(site: Any) -> None:
    assert [roles(machine) for machine in site.machines] == [["control-plane"], ["worker", "storage"], ["worker"]]


@pytest.mark.parametrize(
    ("findings", "look", "code"),
    [
        (None, 0, 0),
        (verdicts(master="PASS"), 0, 0),
        (verdicts(master="WARN"), 0, 0),
        (verdicts(master="UNKNOWN"), 0, 0),
        (verdicts(master="FAIL"), 0, 7),
        (verdicts(master="FAIL"), 5, 5),
    ],
)
def test_exit_code(site: Any, kit: Any, findings: Any, look: int, code: int) -> None:
    assert SiteStatus(site, kit.plan(), findings, look=ExitCode(look)).exit_code == ExitCode(code)


def test_offline_standing_never_fails(site: Any) -> None:
    assert SiteStatus(site).exit_code is ExitCode.OK
    assert status_text(SiteStatus(site)).endswith("no run yet\n")


def test_drift_gathers_the_reasons_of_all_phases(site: Any, kit: Any, snapshot: SnapshotAssertion) -> None:
    status = SiteStatus(site, kit.plan(kit.phase("base", "one"), kit.phase("time", "one", "master")))
    assert status.drift == {
        "one": ("base: never installed", "time: never installed"),
        "master": ("time: never installed",),
    }
    assert status_text(status) == snapshot
    assert "every machine" not in status_text(status)


def test_text_names_what_runs_and_what_was_cut_off(site: Any, kit: Any, snapshot: SnapshotAssertion) -> None:
    run = LastRun("20260301T120000Z", 6, 3.0, {"one": ("Base", "Time")})
    text = status_text(SiteStatus(site, None, None, run, running="`apply` by ops", interrupted="r7"))
    other = status_text(SiteStatus(site, None, None, run, interrupted="r7", continued_by="upgrade"))
    assert text == snapshot
    assert other == snapshot


def test_checks_of_the_cluster_are_listed_and_skipped_ones_are_not(
    site: Any, kit: Any, snapshot: SnapshotAssertion
) -> None:
    findings = (Finding("pods", Verdict.PASS, "cluster", "all run"), Finding("x", Verdict.SKIP, "cluster", "no"))
    text = status_text(SiteStatus(site, kit.plan(), findings))
    assert text == snapshot
    assert "SKIP" not in text


def test_last_run_is_read_from_its_report() -> None:
    run = last_run_of("r", run_report(TROUBLED).as_json())
    assert (run.exit_code, run.left) == (6, TROUBLED.left)
    assert last_run_of("r", run_report(FINE).as_json()).left == {}
    assert last_run_of("r", {}) == LastRun("r", int(ExitCode.INTERNAL), 0.0, {})
