"""Machines that leave: what is planned, in which order, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode, PaiError
from pai_install.operations.node_remove import NodeRemove
from pai_install.operations.removed_machines import NAME, fence, removed_machines
from pai_install.plan.inventory import with_guests
from pai_install.plan.model import ClusterCalls, Inventory, LocalWork, Plan, Playbook
from pai_install.plan.observation import Observation
from pai_install.plan.observed import Membership, Observed, RoleRecord
from pai_install.site import Site
from tests.errors import raises
from tests.unit.cluster.fake import FakeCluster
from tests.unit.cluster.test_drain import budget, pod
from tests.unit.plan.conftest import LAYOUT

LEFT = "\n".join(line for line in LAYOUT.splitlines() if "worker1" not in line) + "\n"


def node(name: str, *, ready: bool = True, identity: str = "id-1", cordoned: bool = False) -> dict[str, Any]:
    """A node as the API gives it."""
    return {
        "kind": "Node",
        "metadata": {"name": name},
        "spec": {"unschedulable": True} if cordoned else {},
        "status": {
            "nodeInfo": {"machineID": identity, "bootID": "boot-1"},
            "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown", "message": "said so"}],
        },
    }


MEMBER = Observed(
    hostname="worker1", roles={"base": RoleRecord()}, kubernetes=Membership(node=True, joined=True), machine_id="id-1"
)
MASTER = Observed(hostname="master", roles={}, kubernetes=Membership(node=True, joined=True, control_plane=True))
CLEAN = Observed(hostname="worker1", machine_id="id-1")


class Removal:
    """worker1 of the planner's site leaves; what the plan is for a cluster and machines as they are."""

    def __init__(self, make_site: Callable[..., Site]) -> None:
        before = make_site(LAYOUT)
        self.machines = tuple(machine for machine in before.machines if machine.hostname == "worker1")
        self.site = make_site(LEFT)

    def operation(self, **how: Any) -> NodeRemove:
        """The operation."""
        return NodeRemove(machines=self.machines, nodes=("worker1",), **how)

    def plan(
        self,
        *objects: Any,
        seen: Observed | None = MEMBER,
        lost: str = "",
        operation: NodeRemove | None = None,
        **how: Any,
    ) -> Plan:
        """objects: of the cluster. seen: what the machine says. lost: why it does not answer."""
        found = operation or self.operation(**how)
        machines = {"master": MASTER, **({"worker1": seen} if seen is not None and not lost else {})}
        inventory = with_guests(Inventory({}, {}, {"master": {}, "worker2": {}}), found.guests)
        unreachable = {"worker1": lost} if lost else {}
        answers = FakeCluster.of(*objects).list(*found.queries)
        return found.plan(self.site, Observation(inventory, machines, unreachable, answers=answers))


@pytest.fixture
def removal(make_site: Callable[..., Site]) -> Removal:
    return Removal(make_site)


def names(plan: Plan) -> list[str]:
    return [step.name for step in plan.steps]


def test_scheduler_pods_node_machine_and_layout_in_this_order(removal: Removal) -> None:
    plan = removal.plan(node("worker1"), pod("front", node="worker1"))
    assert names(plan) == ["cordon", "drain", "leave", "clean", "forget"]
    assert {host for step in plan.steps for host in step.names} == {"worker1"}
    clean, forget = plan.steps[-2:]
    assert clean.action == Playbook("reset.yml", {"machine_reset_data": False})
    assert forget.action == LocalWork("forget", {"how": "remove", "addresses": {"worker1": "10.0.0.2"}})
    assert plan.inventory.host_vars["worker1"]["ansible_host"] == "10.0.0.2"


def test_the_node_is_refused_before_it_is_removed(removal: Removal) -> None:
    (step,) = (step for step in removal.plan(node("worker1", identity="id-7")).steps if step.name == "leave")
    assert isinstance(step.action, ClusterCalls)
    assert [call.verb for call in step.action.calls] == ["apply", "delete"]
    kept = [one for one in step.action.calls[0].arguments["objects"] if one["kind"] == "ConfigMap"]
    assert removed_machines(kept) == {"worker1": "id-7"}


def test_those_that_were_removed_earlier_stay_refused(removal: Removal) -> None:
    plan = removal.plan(node("worker1", identity="id-7"), fence({"old": "id-0"})[0])
    (step,) = (step for step in plan.steps if step.name == "leave")
    assert isinstance(step.action, ClusterCalls)
    assert step.action.calls[0].arguments["objects"][0]["data"] == {"old": "id-0", "worker1": "id-7"}


def test_jobs_are_named_and_refused(removal: Removal, snapshot: SnapshotAssertion) -> None:
    objects = (node("worker1"), pod("train-0", "Job", node="worker1", gpus=8), pod("front", node="worker1"))
    with raises("machines-run-jobs", "1") as caught:
        removal.plan(*objects)
    assert caught.value.details == snapshot
    assert caught.value.exit_code is ExitCode.PREFLIGHT_FAILED
    for word in ("--wait", "--grace", "--force"):
        assert word in caught.value.remedy


@pytest.mark.parametrize("how", [{"force": True}, {"grace": 60}])
def test_jobs_end_where_that_is_said(removal: Removal, how: dict[str, Any]) -> None:
    plan = removal.plan(node("worker1"), pod("train-0", "Job", node="worker1"), **how)
    assert names(plan) == ["cordon", "drain", "leave", "clean", "forget"]


def test_wait_comes_after_the_cordon_and_before_anything_else(removal: Removal) -> None:
    plan = removal.plan(
        node("worker1"), pod("train-0", "Job", node="worker1"), pod("alone", "", node="worker1"), wait=60
    )
    assert names(plan)[:3] == ["cordon", "await-jobs", "drain"]
    (step,) = (step for step in plan.steps if step.name == "await-jobs")
    assert isinstance(step.action, ClusterCalls)
    assert step.action.calls[0].arguments == {"node": "worker1", "timeout_s": 60}
    assert step.hosts[0].reasons == ("2 pods of jobs",)


def test_budgets_that_hold_the_drain_are_named(removal: Removal) -> None:
    plan = removal.plan(node("worker1"), pod("front", node="worker1", labels={"app": "web"}), budget(0))
    (step,) = (step for step in plan.steps if step.name == "drain")
    assert step.hosts[0].impact[0].startswith("PodDisruptionBudget ml/web does not allow ml/front")


def test_a_dead_machine_is_asked_nothing(removal: Removal) -> None:
    operation = removal.operation(dead=True)
    assert operation.watched(removal.site) == ("master",)
    plan = removal.plan(
        node("worker1", ready=False), pod("train-0", "Job", node="worker1"), operation=operation, seen=None
    )
    assert names(plan) == ["leave", "forget"]


def test_nobody_says_that_a_dead_machine_is_clean(removal: Removal, snapshot: SnapshotAssertion) -> None:
    plan = removal.plan(operation=removal.operation(dead=True, how="absent"), seen=None)
    assert plan.empty
    assert plan.nothing == snapshot
    assert removal.plan(operation=removal.operation(how="absent"), seen=CLEAN).nothing.endswith(", and clean")


def test_a_machine_that_is_alive_is_not_removed_as_dead(removal: Removal) -> None:
    with raises("node-not-dead", "worker1"):
        removal.plan(node("worker1"), operation=removal.operation(dead=True), seen=None)


def test_a_machine_that_does_not_answer_is_left_as_it_is(removal: Removal) -> None:
    plan = removal.plan(node("worker1"), lost="no route to host")
    assert plan.unreachable == {"worker1": "no route to host"}
    assert names(plan) == ["leave"], "the executor leaves out hosts that were not reached"


def test_an_interrupted_removal_goes_on_where_it_was(removal: Removal) -> None:
    assert names(removal.plan()) == ["clean", "forget"]
    assert names(removal.plan(seen=CLEAN)) == ["forget"]


def test_a_machine_that_is_kept_in_the_layout_is_done_when_it_is_clean(removal: Removal) -> None:
    plan = removal.plan(seen=CLEAN, how="absent")
    assert (plan.empty, plan.nothing) == (True, "worker1: no node of the cluster, and clean")
    assert names(removal.plan(node("worker1"), how="absent"))[-1] == "forget"


def test_nothing_is_done_without_the_control_plane(removal: Removal) -> None:
    operation = removal.operation()
    answers = FakeCluster.of().list(*operation.queries)
    lost = Observation(Inventory({}, {}, {}), {}, {"master": "off"}, answers=answers)
    with raises("leader-unreachable"):
        operation.plan(removal.site, lost)


def test_several_machines_are_agreed_to_by_name(removal: Removal, snapshot: SnapshotAssertion) -> None:
    plan = Plan((), Inventory({}, {}, {}))
    one = removal.operation()
    assert (one.typed(plan), one.question(plan, ())) == snapshot
    assert one.model_copy(update={"nodes": ("a", "b")}).typed(plan) == "a,b"


STATES = st.fixed_dictionaries({
    "in_cluster": st.booleans(), "ready": st.booleans(), "cordoned": st.booleans(), "dirty": st.booleans(),
    "owners": st.lists(st.sampled_from(["Job", "ReplicaSet", "DaemonSet", ""]), max_size=3),
    "how": st.sampled_from(["remove", "absent"]), "dead": st.booleans(), "force": st.booleans(),
    "others": st.sets(st.sampled_from(["worker2", "master", "stray"])),
})  # fmt: skip


@given(state=STATES)
def test_no_step_is_on_a_machine_that_is_not_named(removal: Removal, state: dict[str, Any]) -> None:
    plan = planned(removal, state)
    if plan is not None:
        assert {host for step in plan.steps for host in step.names} <= {"worker1"}
        assert nodes_touched(plan) <= {"worker1"}


@given(state=STATES)
def test_once_all_steps_are_done_nothing_is_left(removal: Removal, state: dict[str, Any]) -> None:
    """But for the entry of the layout, which is gone then, and with it the name."""
    if planned(removal, {**state, "force": True}) is None:
        return
    after = {**state, "in_cluster": False, "dirty": False, "owners": [], "how": "absent"}
    again = planned(removal, after)
    assert again is not None
    assert again.empty


def planned(removal: Removal, state: dict[str, Any]) -> Plan | None:
    """The plan in a state; None where it is refused."""
    objects = [node(name) for name in sorted(state["others"])]
    objects += [node("worker1", ready=state["ready"], cordoned=state["cordoned"])] if state["in_cluster"] else []
    objects += [pod(f"p{number}", owner, node="worker1") for number, owner in enumerate(state["owners"])]
    operation = removal.operation(dead=state["dead"], force=state["force"], how=state["how"])
    try:
        return removal.plan(*objects, seen=MEMBER if state["dirty"] else CLEAN, operation=operation)
    except PaiError:
        return None


def nodes_touched(plan: Plan) -> set[str]:
    """Nodes that calls to the API name."""
    found: set[str] = set()
    for step in plan.steps:
        for call in step.action.calls if isinstance(step.action, ClusterCalls) else ():
            found |= {call.arguments[key] for key in ("node",) if key in call.arguments}
            found |= {one["name"] for one in call.arguments.get("refs", ()) if one["kind"] == "node"}
            found |= {call.arguments["name"]} if call.arguments.get("kind") == "node" else set()
    return found


def test_the_policy_compares_name_and_machine() -> None:
    policy = next(one for one in fence({"a": "1"}) if one["kind"] == "ValidatingAdmissionPolicy")
    assert policy["metadata"]["name"] == NAME
    assert policy["spec"]["failurePolicy"] == "Ignore", "a rule that cannot be evaluated costs no node"


def test_dead_machines_beside_those_that_answer_are_no_hindrance(removal: Removal) -> None:
    operation = removal.operation()
    answers = FakeCluster.of(node("worker1")).list(*operation.queries)
    seen = Observation(Inventory({}, {}, {"master": {}}), {"master": MASTER, "worker1": MEMBER}, answers=answers)
    other = replace(seen, unreachable={"worker9": "off"})
    assert operation.plan(removal.site, other).unreachable == {}


def test_nothing_is_taken_from_a_scheduler_that_could_not_be_told(removal: Removal) -> None:
    plan = removal.plan(node("worker1"), pod("front", node="worker1"))
    assert all("capacity" in step.needs for step in plan.steps)
    assert {"leave", "clean"} <= {*plan.steps[-1].needs}, "nor does the layout lose one that is still there"
