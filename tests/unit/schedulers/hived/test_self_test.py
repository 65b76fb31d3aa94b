"""Where HiveD's scenarios are played, and that no user's job is in their way or they in its."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from pai_install.schedulers.hived.compile import class_value
from pai_install.schedulers.hived.self_test import Programme, busy, gang_objects, programme
from pai_install.schedulers.registry import backend_of
from pai_install.schedulers.self_test.guarantees import PROMISES, START, left_out
from pai_install.schedulers.self_test.objects import CELL_PRIORITIES, CellSite, SelfTestContext
from pai_install.schedulers.self_test.scenarios import Bounds, on_cells
from pai_install.scheduling.job_queue import HIVED_MARKER, HIVED_SPEC, hived_spec
from pai_install.scheduling.model import PRIORITIES, Scheduling, Supply
from pai_install.scheduling.read import scheduling_of
from tests.hived_demo import demo_site
from tests.unit.scheduling.usage.objects import pod
from tests.virtual_clusters import CASES, cluster, cores, gpus, pinned, share, site, two_teams, with_backend

BOUNDS = Bounds()
SMALL = {"scheduler-borrow", "scheduler-reclaim"}
STAGE = CellSite("research", "product", "a100", "a100", unit=2, room=4, total=8, devices=True)


def nodes(scheduling: Scheduling) -> list[dict[str, Any]]:
    return [node(name, supply) for supply in scheduling.supply.values() for name in supply.machines]


def node(name: str, supply: Supply, *, cordoned: bool = False) -> dict[str, Any]:
    offered = {supply.resource: str(supply.units)} if supply.resource else {"cpu": str(supply.units)}
    status = {"allocatable": offered, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name}, "spec": {"unschedulable": cordoned}, "status": status}


def planned(scheduling: Scheduling, *pods: dict[str, Any]) -> Programme:
    return programme(with_backend(scheduling, "hived"), nodes(scheduling), pods, BOUNDS)


def theirs(node_name: str, namespace: str = "research") -> dict[str, Any]:
    note = {HIVED_SPEC: "virtualCluster: research\npriority: 10\nleafCellNumber: 1"}
    found = pod("theirs", node_name, notes=note, scheduler="hivedscheduler-ds-research")
    return {**found, "metadata": {**found["metadata"], "namespace": namespace}}


def names(found: Programme) -> set[str]:
    return {act.scenario.name for act in found.acts}


def test_the_smallest_idle_guarantee_is_used_and_another_one_borrows(snapshot: SnapshotAssertion) -> None:
    found = planned(two_teams())
    stage = found.acts[0].stage
    assert stage == CellSite("product", "research", "a100", "a100", unit=2, room=4, total=16, devices=True)
    assert names(found) == {"quota", "priority", "restart", "gang", "deadlock", "oversize", "borrow", "down"}
    assert found.reasons["scheduler-cores"] == snapshot


def test_with_a_block_the_test_stays_in_one_chain(tmp_path: Path) -> None:
    """vc1 has 4 devices beside the pinned ones. An opportunistic job could use the other chain, so nothing is lent."""
    scheduling = scheduling_of(demo_site(tmp_path))
    assert scheduling is not None
    found = programme(scheduling, nodes(scheduling), (), BOUNDS)
    stage = found.acts[0].stage
    assert (stage.leaf, stage.unit, stage.room, stage.total) == ("K80", 1, 4, 4)
    assert "borrow" not in names(found)


def test_cores_are_tried_where_machines_without_devices_are_guaranteed() -> None:
    found = planned(CASES["cpu_only"]())
    (act,) = [act for act in found.acts if act.scenario.name == "cores"]
    assert (act.stage.cluster, act.stage.sku, act.stage.devices) == ("batch", "cpu", False)
    assert (act.scenario.resource, act.scenario.unit) == (HIVED_MARKER, "1")


def test_one_who_has_everything_cannot_borrow() -> None:
    found = planned(CASES["quick_start"]())
    assert "borrow" not in names(found)
    assert {found.reasons[check] for check in SMALL} == {
        "default has all machines of DT: no other virtual cluster can lend"
    }


def test_a_large_cluster_is_not_filled_to_show_that_it_lends(snapshot: SnapshotAssertion) -> None:
    supply = gpus("a100", 70)
    found = planned(site(supply, clusters=(cluster("small", share(supply, 8)), cluster("large", share(supply, 552)))))
    assert found.acts[0].stage.cluster == "small"
    assert "borrow" not in names(found)
    assert found.reasons["scheduler-borrow"] == snapshot


def test_nothing_is_tried_beside_jobs_of_users() -> None:
    for job in (theirs("a100-1"), theirs("")):
        found = planned(two_teams(), job)
        assert found.acts == ()
        assert found.reasons["scheduler-gang"] == "jobs have or want a100: it is tried while none does"
    assert planned(two_teams(), theirs("a100-1", "scheduler-self-test-gang")).acts, (
        "what an earlier run left goes first"
    )


def test_jobs_on_machines_of_another_kind_are_not_in_the_way() -> None:
    scheduling = with_backend(pinned(), "hived")
    found = planned(scheduling, theirs("v100-1"))
    assert found.acts[0].stage.sku == "a100"
    assert not busy(scheduling, "a100", [theirs("v100-1")])


def test_a_machine_that_is_away_is_named(snapshot: SnapshotAssertion) -> None:
    scheduling = with_backend(two_teams(), "hived")
    known = nodes(scheduling)
    known[2] = node("a100-3", scheduling.supply["a100"], cordoned=True)
    found = programme(scheduling, known, (), BOUNDS)
    assert found.acts == ()
    assert found.reasons["scheduler-quota"] == snapshot


def test_who_may_have_no_guaranteed_jobs_is_left_out(snapshot: SnapshotAssertion) -> None:
    supply = gpus("a100", 2)
    only = site(supply, clusters=(cluster("guests", share(supply, 16), highest="oppo"),))
    assert planned(only).reasons["scheduler-gang"] == snapshot


def test_a_guarantee_that_is_too_small_is_told(snapshot: SnapshotAssertion) -> None:
    supply = gpus("a100", 1, 2)
    found = planned(site(supply, clusters=(cluster("tiny", share(supply, 2)),)))
    assert found.reasons["scheduler-gang"] == snapshot


@given(st.integers(1, 20), st.integers(1, 16), st.integers(1, 320), st.booleans())
def test_pods_fill_the_guarantee_and_each_fits_a_machine(
    machines: int, units: int, guaranteed: int, with_devices: bool
) -> None:
    supply = gpus("sku", machines, units) if with_devices else cores("sku", machines, units)
    guaranteed = min(guaranteed, supply.total)
    found = planned(site(supply, clusters=(cluster("one", share(supply, guaranteed)),)))
    for act in found.acts:
        stage = act.stage
        assert units % stage.unit == 0
        assert 3 <= stage.room <= 64
        assert guaranteed - stage.room * stage.unit < units, "less than a machine is left over"
        assert stage.unit == 1 or stage.room * stage.unit == guaranteed // units * units


@pytest.mark.parametrize("case", sorted(CASES))
@pytest.mark.parametrize("disruptive", [True, False])
def test_every_promise_is_tried_once_or_has_a_reason(case: str, *, disruptive: bool) -> None:
    found = planned(CASES[case]())
    played = tuple(act.scenario for act in found.acts if disruptive or not act.scenario.disruptive)
    tried = [check for one in played for check in one.checks]
    reasons = dict(left_out(backend_of("hived").self_test.unsupported, played, found.reasons))
    assert sorted([*([START] if played else []), *tried, *reasons]) == sorted(PROMISES)
    assert "not tried" not in reasons.values()


def asked(name: str, gang: str, stage: CellSite = STAGE) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """What HiveD is told by each role of a gang, and its pod's spec."""
    scenario = next(one for one in on_cells(BOUNDS, HIVED_MARKER, stage.room, stage.total) if one.name == name)
    context = SelfTestContext("hived", "run-1", "busybox", ("w1",), cells=stage)
    (job_set,) = gang_objects(context, scenario, scenario.gangs[gang])
    templates = [row["template"]["spec"]["template"] for row in job_set["spec"]["replicatedJobs"]]
    return [(dict(hived_spec(template)), template["spec"]) for template in templates]


def test_the_roles_of_a_gang_are_one_affinity_group() -> None:
    (one, _), (other, spec) = asked("gang", "whole")
    assert one == other
    assert one["affinityGroup"] == {
        "name": "scheduler-self-test-gang.whole.run-1",
        "members": [{"podNumber": 3, "leafCellNumber": 2}],
    }
    assert spec["schedulerName"] == "hivedscheduler-ds-research"
    assert spec["containers"][0]["resources"]["limits"] == {HIVED_MARKER: "1"}


def test_who_borrows_has_the_sites_priority_for_it_in_another_virtual_cluster() -> None:
    ((guest, spec),) = asked("borrow", "guest")
    assert (guest["virtualCluster"], guest["priority"], spec["priorityClassName"]) == ("product", -1, "oppo")
    assert guest["affinityGroup"]["members"][0]["podNumber"] == STAGE.total
    ((owner, spec),) = asked("borrow", "owner")
    assert (owner["virtualCluster"], spec["priorityClassName"]) == ("research", "pai-self-test-high")
    alone = replace(STAGE, guest="research")
    assert asked("borrow", "guest", alone)[0][1]["schedulerName"] == "hivedscheduler-ds-research"


def test_every_guaranteed_job_of_a_user_goes_before_the_tests() -> None:
    users = sorted(value for name, value in PRIORITIES.items() if name != "oppo")
    assert PRIORITIES["oppo"] < min(CELL_PRIORITIES.values())
    assert max(CELL_PRIORITIES.values()) < users[0]
    assert class_value(-1) < class_value(0) < class_value(1) < class_value(users[0]) < 0
