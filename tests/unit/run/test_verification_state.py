"""What a run leaves proven, and what not."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.plan.model import Plan
from pai_install.report.model import HostResult, HostStatus, Outcome, PhaseResult
from pai_install.run.verification_state import Proof, VerificationGap, begun, ended, read_proof, write_proof

OLD = Proof(unproven={"two": VerificationGap(why="an older run")})


@pytest.fixture
def plan(kit: Any) -> Plan:
    """A change on one machine, and the proof on all."""
    made: Plan = kit.plan(kit.phase("base", "one"), replace(kit.phase("verify", "master", "one", "two"), proves=True))
    return made


def outcome(base: HostStatus, *findings: Finding, verify: HostStatus = HostStatus.OK) -> Outcome:
    """How the two steps ended."""
    proved = {name: HostResult(verify) for name in ("master", "one", "two")}
    phases = (PhaseResult("base", "Base", 1.0, {"one": HostResult(base)}), PhaseResult("verify", "Verify", 1.0, proved))
    return Outcome(2.0, phases, findings)


def fail(subject: str, name: str = "dns") -> Finding:
    return Finding(name, Verdict.FAIL, subject, "no answer")


def test_machines_that_are_about_to_change_are_not_proven_should_the_run_be_cut_off(plan: Plan) -> None:
    assert begun(OLD, plan, ("one",), "r1").reasons == {
        "one": "run r1 was interrupted while it changed the machine",
        "two": "an older run",
    }
    assert begun(OLD, plan, (), "r1") == OLD, "a refused machine is not touched"


def test_good_proof_ends_it_for_every_machine_that_it_was_made_on(plan: Plan) -> None:
    assert ended(OLD, plan, outcome(HostStatus.CHANGED), "r1") == Proof()


def test_failed_check_of_a_machine_is_its_own_and_one_of_the_cluster_is_everybodys(plan: Plan) -> None:
    found = ended(Proof(), plan, outcome(HostStatus.CHANGED, fail("one"), fail("one", "api")), "r1").unproven
    assert found == {"one": VerificationGap(why="run r1 found dns, api failed", failed=True)}
    assert set(ended(Proof(), plan, outcome(HostStatus.OK, fail("cluster")), "r1").unproven) == {"master", "one", "two"}


def test_change_without_proof_is_remembered(plan: Plan) -> None:
    left = ended(Proof(), plan, outcome(HostStatus.CHANGED, verify=HostStatus.LEFT), "r1")
    assert left.reasons == {"one": "run r1 changed it and did not verify it"}
    broken = ended(Proof(), plan, outcome(HostStatus.OK, verify=HostStatus.FAILED), "r1")
    assert {entry.failed for entry in broken.unproven.values()} == {True}


def test_step_that_changed_nothing_leaves_what_was_known(plan: Plan) -> None:
    assert ended(OLD, plan, outcome(HostStatus.OK, verify=HostStatus.LEFT), "r1") == OLD
    assert ended(OLD, plan, outcome(HostStatus.LEFT, verify=HostStatus.UNREACHABLE), "r1") == OLD


def test_proof_of_an_operations_own_changes_leaves_what_others_left(plan: Plan) -> None:
    own = replace(plan, operation="vc apply", proves_own=True)
    others = Proof(unproven={name: VerificationGap(why="not verified", operation="apply") for name in ("one", "two")})
    assert begun(others, own, ("one",), "r1") == others
    assert ended(others, own, outcome(HostStatus.CHANGED), "r1") == others
    broken = ended(others, own, outcome(HostStatus.CHANGED, fail("one")), "r1").unproven["one"]
    assert broken == VerificationGap(why="run r1 found dns failed", failed=True, operation="apply"), (
        "only apply proves it"
    )


def test_proof_of_an_operations_own_changes_ends_its_own(plan: Plan) -> None:
    own = replace(plan, operation="vc apply", proves_own=True)
    unsure = begun(Proof(), own, ("one",), "r1")
    assert unsure.unproven["one"].operation == "vc apply"
    assert ended(unsure, own, outcome(HostStatus.CHANGED), "r1") == Proof()
    assert ended(unsure, replace(plan, operation="apply"), outcome(HostStatus.OK), "r2") == Proof(), "all is proven"


def test_step_that_only_looks_neither_breaks_nor_makes_a_proof(kit: Any) -> None:
    plan: Plan = kit.plan(replace(kit.phase("registry-test", "one", "two"), looks=True))
    phases = (PhaseResult("registry-test", "Ask", 1.0, {name: HostResult(HostStatus.OK) for name in ("one", "two")}),)
    assert begun(OLD, plan, ("one", "two"), "r1") == OLD
    assert ended(OLD, plan, Outcome(1.0, phases, (fail("one", "registry-reachable"),)), "r1") == OLD


def test_file_is_the_owners(tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    assert read_proof(path) == Proof()
    write_proof(path, OLD)
    assert read_proof(path) == OLD
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_machines_are_listed_in_the_order_of_the_plan(kit: Any) -> None:
    """A set has another order in each process, and so had `status`."""
    names = [f"m{number}" for number in range(20)]
    found = begun(Proof(), kit.plan(kit.phase("base", *names)), names, "r1")
    assert list(found.unproven) == names
