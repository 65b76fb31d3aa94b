"""Machines that join: an installation limited to them, and what goes with a new node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from pai_install.components.model import ComponentSet
from pai_install.operations.install import Install
from pai_install.operations.node_add import NodeAdd
from pai_install.parts.registry import make_context
from pai_install.plan.inventory import build_inventory
from pai_install.plan.model import Inventory, Plan
from pai_install.plan.observation import Observation
from pai_install.plan.observed import Membership, Observed, RoleRecord
from pai_install.site import Site
from tests.errors import raises
from tests.unit.cluster.fake import FakeCluster
from tests.unit.operations.test_node_remove import node
from tests.unit.plan.conftest import LAYOUT, ROLES, converged

KUEUE = """
scheduler: {type: kueue}
virtual-clusters:
  - {name: research, quota: [{sku: gpu, machines: 1}]}
"""


def answered(observation: Observation, *objects: Any) -> Observation:
    """With what the cluster says."""
    return replace(observation, answers=FakeCluster.of(*objects).list(*NodeAdd(nodes=("x",)).queries))


def members(inventory: Inventory) -> dict[str, Observed]:
    """Every machine as the site says, a node."""
    planes = inventory.groups["control_plane"]
    return {
        host: seen.model_copy(
            update={
                "kubernetes": Membership(node=True, joined=True, control_plane=host in planes),
                "machine_id": f"id-{host}",
            }
        )
        for host, seen in converged(inventory).items()
    }


@pytest.fixture
def done(inventory: Inventory) -> Observation:
    """Every machine is a node, as the site says."""
    found = Observation(inventory, members(inventory))
    return answered(found, *(node(host, identity=f"id-{host}") for host in found.machines))


def without(observation: Observation, *names: str) -> Observation:
    """The same with new machines in the place of these."""
    blank = {name: Observed(hostname=name, machine_id=f"id-{name}") for name in names}
    others = (node(host, identity=f"id-{host}") for host in observation.machines if host not in names)
    return answered(replace(observation, machines={**observation.machines, **blank}), *others)


def names(plan: Plan) -> list[str]:
    return [step.name for step in plan.steps]


def test_it_is_the_installation_limited_to_the_machines(site: Site, done: Observation) -> None:
    seen = without(done, "worker2")
    plan = NodeAdd(nodes=("worker2",)).plan(site, seen)
    limited = Install(limit=("worker2",)).plan(site, seen)
    assert plan.steps == limited.steps
    assert {host for step in plan.steps for host in step.names} == {"worker2"}


def test_only_the_machines_and_the_control_planes_are_asked(site: Site) -> None:
    assert NodeAdd(nodes=("worker2",)).watched(site) == ("master", "worker2")


def test_nodes_that_are_as_the_site_says_are_nothing_to_do(site: Site, done: Observation) -> None:
    plan = NodeAdd(nodes=("worker1", "worker2")).plan(site, done)
    assert (plan.empty, plan.nothing) == (True, "worker1, worker2: nodes of the cluster already, as the site says")


def test_a_machine_that_came_back_is_cleaned_and_joins_anew(
    site: Site, done: Observation, snapshot: SnapshotAssertion
) -> None:
    back = answered(done, node("master"), node("worker1"))
    plan = NodeAdd(nodes=("worker2",)).plan(site, back)
    assert names(plan)[:2] == ["clean", "base"]
    assert plan.steps[0].hosts[0].reasons == snapshot
    assert "workers" in names(plan), "what is on it counts for nothing"


def test_another_machine_with_the_name_of_a_node_is_cleaned(site: Site, done: Observation) -> None:
    """It was a node once, under the name that another machine has in the cluster."""
    other = answered(done, node("master"), node("worker1"), node("worker2", identity="id-of-another"))
    assert names(NodeAdd(nodes=("worker2",)).plan(site, other))[0] == "clean"


def test_a_join_that_was_cut_off_is_completed_not_cleaned(site: Site, done: Observation) -> None:
    half = Observed(hostname="worker2", roles={"base": RoleRecord()}, kubernetes=Membership(node=True))
    seen = answered(replace(done, machines={**done.machines, "worker2": half}), node("master"), node("worker1"))
    plan = NodeAdd(nodes=("worker2",)).plan(site, seen)
    assert "clean" not in names(plan)
    assert "workers" in names(plan)


@pytest.mark.parametrize("name", ["worker2", "master"])
def test_for_a_machine_that_does_not_answer_nothing_is_done_elsewhere(site: Site, done: Observation, name: str) -> None:
    """The others lack everything, so that an installation would find work on each of them."""
    bare = without(done, *done.machines)
    silent = {host: seen for host, seen in bare.machines.items() if host != name}
    plan = NodeAdd(nodes=(name,)).plan(site, replace(bare, machines=silent, unreachable={name: "no route to host"}))
    assert (plan.steps, plan.unreachable) == ((), {name: "no route to host"})


def test_beside_a_control_plane_that_does_not_answer_a_worker_joins_alone(site: Site, done: Observation) -> None:
    bare = without(done, "worker1", "worker2")
    seen = {host: it for host, it in bare.machines.items() if host != "master"}
    plan = NodeAdd(nodes=("master", "worker2")).plan(site, replace(bare, machines=seen, unreachable={"master": "off"}))
    assert {host for step in plan.steps for host in step.names} <= {"worker2"}


def test_strange_names_are_refused(site: Site) -> None:
    with raises("limit-unknown-machine", "worker9"):
        NodeAdd(nodes=("worker9",)).require(site)


def test_a_control_plane_is_made_known_to_every_machine(site: Site, done: Observation) -> None:
    operation = NodeAdd(nodes=("master",))
    operation.require(site)
    assert operation.watched(site) == ("master", "worker1", "worker2")
    plan = operation.plan(site, without(done, "worker2"))
    assert "worker2" in plan.hosts, "others that lack something get it, too"


def test_the_layout_is_written_first(site: Site, done: Observation) -> None:
    plan = NodeAdd(nodes=("worker2",), before="a", text="b").plan(site, without(done, "worker2"))
    assert names(plan)[0] == "layout"
    assert plan.steps[0].names == ("master",)


def test_the_scheduler_hears_of_the_machine(make_site: Callable[..., Site], components: ComponentSet) -> None:
    small = make_site(
        LAYOUT.replace(
            "worker2, hostip: 10.0.0.3, machine-type: cpu", "worker2, hostip: 10.0.0.3, machine-type: gpu, absent: true"
        ),
        services=KUEUE,
    )
    before = build_inventory(make_context(small, components, small.directory), dict.fromkeys(ROLES, "1"))
    large = make_site(
        LAYOUT.replace("worker2, hostip: 10.0.0.3, machine-type: cpu", "worker2, hostip: 10.0.0.3, machine-type: gpu"),
        services=KUEUE,
    )
    after = build_inventory(make_context(large, components, large.directory), dict.fromkeys(ROLES, "1"))
    had = {**members(before), "worker2": Observed(hostname="worker2")}
    seen = answered(Observation(after, had), node("master"), node("worker1"))
    plan = NodeAdd(nodes=("worker2",)).plan(large, seen)
    (capacity,) = (step for step in plan.steps if step.name == "capacity")
    assert capacity.names == ("master",)
    assert names(plan).index("labels") < names(plan).index("capacity") < names(plan).index("verify")
    touched = {host for step in plan.steps if step.name not in ("capacity", "verify", "health") for host in step.names}
    assert touched == {"worker2"}
    (verify,) = (step for step in plan.steps if step.name == "verify")
    assert set(verify.names) == {"master", "worker2"}, "what the capacity changed is proven, too"


@given(
    new=st.sets(st.sampled_from(["worker1", "worker2"]), min_size=1),
    named=st.sets(st.sampled_from(["worker1", "worker2"]), min_size=1),
)
def test_no_other_worker_is_touched(site: Site, done: Observation, new: set[str], named: set[str]) -> None:
    plan = NodeAdd(nodes=tuple(sorted(named))).plan(site, without(done, *new))
    assert {host for step in plan.steps for host in step.names} <= named | {"master"}
