"""What `apply` and `verify` plan: the phases with work, and the proof of what they made."""

from __future__ import annotations

from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode
from pai_install.operations.install import Install
from pai_install.operations.verify import Verify
from pai_install.plan.model import Inventory, LocalWork, Plan
from pai_install.plan.observation import Observation
from pai_install.plan.observed import Observed
from pai_install.plan.phases import PHASE_NAMES
from pai_install.site import Site
from tests.errors import raises
from tests.unit.plan.conftest import converged


def names(plan: Plan) -> list[str]:
    """The planned steps."""
    return [step.name for step in plan.steps]


@pytest.fixture
def done(inventory: Inventory) -> Observation:
    """Every machine as the site says."""
    return Observation(inventory, converged(inventory))


@pytest.fixture
def bare(site: Site, inventory: Inventory) -> Observation:
    """Machines on which nothing was ever done."""
    machines = {machine.hostname: Observed(hostname=machine.hostname) for machine in site.present_machines}
    return Observation(inventory, machines)


def test_new_cluster_gets_every_phase_and_its_proof(site: Site, bare: Observation) -> None:
    plan = Install().plan(site, bare)
    # this site names no registry and no storage
    assert names(plan) == [*(name for name in PHASE_NAMES if name not in ("registries", "storage")), "health"]
    verify, health = plan.steps[-2:]
    assert verify.hosts[0].reasons == ("after a change",)
    assert (verify.proves, verify.previewed, health.previewed) == (True, False, False)
    assert health.action == LocalWork("health")
    assert health.needs == ("verify",)
    assert plan.leader == "master"


def test_nothing_to_do_proves_nothing(site: Site, done: Observation) -> None:
    assert Install().plan(site, done).empty


def test_phase_by_name_runs_without_the_proof(site: Site, done: Observation) -> None:
    assert names(Install(phases=("time",)).plan(site, done)) == ["time"]


def test_proof_can_be_left_to_a_later_run(site: Site, bare: Observation, done: Observation) -> None:
    assert names(Install(verify=False).plan(site, bare)) == names(Install().plan(site, bare))[:-2]
    left = replace(done, unproven={"worker1": "run 1 changed it and did not verify it"})
    assert Install(verify=False).plan(site, left).empty
    assert names(Install().plan(site, left)) == ["verify", "health"]
    with raises("no-verify-contradicts-phase"):
        Install(verify=False, phases=("base", "verify")).require(site)


def test_proof_by_name_runs_alone_where_nothing_else_is_asked_for(site: Site, done: Observation) -> None:
    plan = Install(phases=("verify",)).plan(site, done)
    assert names(plan) == ["verify", "health"]
    assert plan.steps[0].hosts[0].reasons == ("asked for",)


def test_verify_proves_the_machines_that_answered(site: Site, done: Observation) -> None:
    machines = {name: seen for name, seen in done.machines.items() if name != "worker1"}
    plan = Verify().plan(site, Observation(done.inventory, machines, {"worker1": "no route"}))
    assert names(plan) == ["verify", "health"]
    assert plan.steps[0].names == ("master", "worker2")
    assert plan.unreachable == {"worker1": "no route"}


def test_limit_proves_the_named_machines_and_those_that_were_changed_for_them(
    site: Site, done: Observation, bare: Observation
) -> None:
    assert Verify(limit=("worker1",)).plan(site, done).steps[0].names == ("worker1",)
    assert Install(phases=("verify",), limit=("worker1",)).plan(site, done).steps[0].names == ("worker1",)
    new = Observation(done.inventory, {**done.machines, "worker2": bare.machines["worker2"]})
    assert Install(limit=("worker2",)).plan(site, new).steps[-2].names == ("worker2",)
    assert Install(limit=("worker2",)).plan(site, bare).steps[-2].names == ("master", "worker2")


def test_nobody_answered_is_nothing_to_prove(site: Site, done: Observation) -> None:
    assert Verify().plan(site, Observation(done.inventory, {}, {"master": "off"})).empty


def test_names_that_the_site_does_not_have_are_refused_before_anything(site: Site, snapshot: SnapshotAssertion) -> None:
    for operation in (Install(limit=("worker3",)), Verify(limit=("worker3",))):
        with raises("limit-unknown-machine", "worker3") as caught:
            operation.require(site)
        assert caught.value.exit_code is ExitCode.USAGE
    assert Install(limit=("worker2",)).watched(site) == ("master", "worker2")
    with raises("unknown-phase") as caught:
        Install(phases=("base", "runtme")).require(site)
    assert caught.value.remedy == snapshot
    assert caught.value.exit_code is ExitCode.USAGE


def test_what_an_earlier_run_left_unproven_is_proven_also_where_nothing_is_to_be_done(
    site: Site, done: Observation, snapshot: SnapshotAssertion
) -> None:
    left = replace(done, unproven={"worker1": "run r1 found dns failed", "gone": "long ago"})
    plan = Install().plan(site, left)
    assert names(plan) == ["verify", "health"]
    assert [host.reasons[0] for host in plan.steps[0].hosts] == snapshot
    assert names(Install(phases=("time",)).plan(site, left)) == ["time"]
    assert Install(limit=("worker2",)).plan(site, left).empty
    assert Install().plan(site, replace(done, unproven={"gone": "long ago"})).empty
