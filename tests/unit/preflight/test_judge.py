"""Judging as a whole: fit machines pass, missing evidence is never a pass, forcing is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.runner import force, require_known
from pai_install.checks.verdict import Verdict
from pai_install.errors import ExitCode
from pai_install.preflight.catalogue import CATALOGUE
from pai_install.preflight.contact import CONTACT_CHECKS, no_contact
from pai_install.preflight.evidence import PreflightEvidence, parse_evidence
from pai_install.preflight.judge import judge
from pai_install.preflight.rules import CHECKS
from pai_install.site import Site
from tests.errors import raises
from tests.unit.preflight.machines import (
    CONFIG,
    DRIVER,
    LAYOUT,
    NAMES,
    STORAGES,
    STORING,
    fleet,
    installed,
    read_site,
    without,
)

GOOD = {Verdict.PASS, Verdict.SKIP}


def test_fit_machines_have_nothing_in_the_way(site: Site) -> None:
    found = judge(site, fleet(), {})
    assert [finding for finding in found if finding.verdict not in GOOD] == []
    assert {finding.subject for finding in found} == set(NAMES)


def test_an_installed_cluster_passes(site: Site) -> None:
    found = judge(site, fleet(base=installed), {})
    assert [finding for finding in found if finding.verdict not in GOOD] == []


def test_every_check_speaks_once_per_machine_at_most(tmp_path: Path) -> None:
    site = read_site(tmp_path, STORING, CONFIG + DRIVER, services=STORAGES)
    found = [(finding.subject, finding.id) for finding in judge(site, fleet(), {})]
    assert len(found) == len(set(found))
    assert {check.id for check in CHECKS} <= {name for _, name in found}


def test_no_evidence_is_never_a_pass(site: Site, snapshot: SnapshotAssertion) -> None:
    found = judge(site, {name: parse_evidence({"problems": {"swap": "no answer within 20 s"}}) for name in NAMES}, {})
    passed = {finding.id for finding in found if finding.verdict is Verdict.PASS}
    assert passed == {"reachable"}
    swap = next(finding for finding in found if finding.id == "swap")
    assert swap.verdict is Verdict.UNKNOWN
    assert swap.message == snapshot


def test_each_missing_part_leaves_the_other_checks_alone(site: Site) -> None:
    """Whatever part is missing on one machine: nothing raises, nothing else than its own checks becomes UNKNOWN."""
    for part in PreflightEvidence.model_fields:
        if part in ("problems", "sudo_problem", "identity"):
            continue
        seen = fleet()
        seen["master"] = without(seen["master"], part)
        found = judge(site, seen, {})
        unknown = {finding.subject for finding in found if finding.verdict is Verdict.UNKNOWN}
        assert unknown <= {"master"}, part
        assert not [finding for finding in found if finding.verdict is Verdict.FAIL], part


def test_only_some_machines_are_judged_but_compared_with_all(site: Site) -> None:
    seen = fleet({"worker2": {"identity": {"machine_id": f"{2:032x}"}}})
    found = judge(site, seen, {}, hosts=["worker1"])
    assert {finding.subject for finding in found} == {"worker1"}
    assert next(finding for finding in found if finding.id == "machine-id").verdict is Verdict.FAIL


def test_an_absent_machine_is_not_judged(tmp_path: Path) -> None:
    layout = LAYOUT.replace("machine-type: cpu, pai-worker", "absent: true, machine-type: cpu, pai-worker")
    site = read_site(tmp_path / "absent", layout)
    assert "worker2" not in {finding.subject for finding in judge(site, fleet(), {"worker2": "off"})}


@pytest.mark.parametrize(
    ("words", "check", "part_of_remedy"),
    [
        ("ssh: connect to host 10.0.0.2 port 22: No route to host", "reachable", "absent: true"),
        ("ssh: connect to host 10.0.0.2 port 22: Connection refused", "reachable", "sshd"),
        ("@@@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @@@", "host-key", "--accept-new"),
        ("Host key verification failed.", "host-key", "--accept-new"),
        (
            "Please add this host's fingerprint to your known_hosts file to manage this host.",
            "host-key",
            "--accept-new",
        ),
        ("pai@10.0.0.2: Permission denied (publickey,password).", "login", "key"),
        ("/bin/sh: 1: /usr/bin/python3: not found", "python", "python3"),
        ("OSError: [Errno 28] No space left on device: '/tmp/ansible'", "disk-space", "space"),
        ("Missing sudo password", "sudo", "sudo"),
        ("something that nobody has seen before", "reachable", "ssh"),
    ],
)
def test_a_machine_without_evidence_is_explained(site: Site, words: str, check: str, part_of_remedy: str) -> None:
    seen = fleet()
    del seen["worker1"]
    found = [finding for finding in judge(site, seen, {"worker1": words}) if finding.subject == "worker1"]
    assert [(finding.id, finding.verdict) for finding in found] == [(check, Verdict.FAIL)]
    assert words.split(maxsplit=1)[0] in found[0].value
    assert part_of_remedy in found[0].remedy


def test_a_long_failure_is_cut() -> None:
    assert len(no_contact("worker1", "x" * 5000).value) == 500


def test_forcing_turns_a_failure_into_a_named_warning(site: Site) -> None:
    found = judge(site, fleet({"worker1": {"identity": {"hostname": "other"}}}), {})
    forced = force(found, ["hostname"])
    before = [finding for finding in found if finding.verdict is Verdict.FAIL]
    after = next(finding for finding in forced if finding.id == "hostname" and finding.subject == "worker1")
    assert [finding.id for finding in before] == ["hostname"]
    assert after.verdict is Verdict.WARN
    assert after.message.endswith("(forced)")
    assert after.remedy == before[0].remedy


def test_forcing_leaves_everything_else(site: Site) -> None:
    found = judge(site, fleet({"worker1": {"identity": {"hostname": "other"}}}), {})
    assert force(found, ["swap"]) == found


def test_only_known_checks_can_be_forced() -> None:
    require_known(["swap", "reachable"], CATALOGUE)
    with raises("force-check-unknown") as caught:
        require_known(["swap", "nonsense"], CATALOGUE)
    assert caught.value.exit_code is ExitCode.USAGE
    assert "swap" in caught.value.remedy


def test_ids_are_unique_and_told() -> None:
    ids = [check.id for check in CHECKS]
    assert len(ids) == len(set(ids))
    assert set(CONTACT_CHECKS).isdisjoint(ids)
    assert all(check.title and check.reads and check.rule and check.remedy for check in CATALOGUE.values())
