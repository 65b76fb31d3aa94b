"""Reboots: batch by batch, each given back before the next one begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode, PaiError
from pai_install.kube.labels import BOOT_TO_END, CORDONED_BY_REBOOT
from pai_install.operations.node_reboot import NodeReboot
from pai_install.plan.model import ClusterCalls, Inventory, LocalWork, Plan, Playbook
from pai_install.plan.observation import Observation
from pai_install.site import Site
from tests.errors import raises
from tests.unit.cluster.fake import FakeCluster
from tests.unit.cluster.test_drain import pod
from tests.unit.operations.test_node_remove import node

LAYOUT = """
machine-sku:
  cpu: {mem: 8Gi, cpu: {vcore: 4}}
machine-list:
  - {hostname: master, hostip: 10.0.0.1, machine-type: cpu, pai-master: "true"}
""" + "".join(
    f'  - {{hostname: w{number}, hostip: 10.0.1.{number}, machine-type: cpu, pai-worker: "true"}}\n'
    for number in range(1, 7)
)
ALL = tuple(f"w{number}" for number in range(1, 7))


@pytest.fixture
def six(make_site: Callable[..., Site]) -> Site:
    """One control plane, six workers."""
    return make_site(LAYOUT)


def planned(site: Site, *objects: Any, names: tuple[str, ...] = ALL, cordoned: bool = False, **how: Any) -> Plan:
    operation = NodeReboot(nodes=names, **how)
    operation.require(site)
    cluster = FakeCluster.of(*(node(name, cordoned=cordoned) for name in ALL), *objects)
    inventory = Inventory({}, {}, {})
    return operation.plan(site, Observation(inventory, {}, answers=cluster.list(*operation.queries)))


def test_a_batch_is_emptied_rebooted_looked_at_and_given_back(six: Site) -> None:
    plan = planned(six, pod("front", node="w1"), names=("w1", "w2"), max_unavailable="2")
    assert [step.name for step in plan.steps] == [
        "mark", "cordon-1", "drain-1", "reboot-1", "ready-1", "health-1", "uncordon-1", "forget",
    ]  # fmt: skip
    reboot, ready, health = plan.steps[3:6]
    assert reboot.action == Playbook("reboot.yml", {"pai_reboot_timeout": 600})
    assert isinstance(ready.action, ClusterCalls)
    assert ready.action.calls[0].arguments == {"node": "w1", "boot": "boot-1", "timeout_s": 600}
    assert health.action == LocalWork("health-gate")


def test_a_node_that_was_out_of_scheduling_stays_so(six: Site) -> None:
    plan = planned(six, names=("w1",), cordoned=True)
    assert [step.name for step in plan.steps] == ["mark", "reboot-1", "ready-1", "health-1", "forget"]


def labelled(name: str, *, cordoned: bool = False, **labels: str) -> Any:
    """A node with labels of a reboot that was interrupted."""
    found = node(name, cordoned=cordoned)
    found["metadata"]["labels"] = {
        {"to_end": BOOT_TO_END, "ours": CORDONED_BY_REBOOT}[key]: it for key, it in labels.items()
    }
    return found


def test_an_interrupted_command_goes_on_with_what_is_left(six: Site, snapshot: SnapshotAssertion) -> None:
    """w1 is through, w2 was taken out of scheduling and rebooted, w3 and w4 were not begun."""
    left = (
        labelled("w1", to_end="boot-0"),
        labelled("w2", to_end="boot-0", ours="true", cordoned=True),
        labelled("w3", to_end="boot-1"),
        labelled("w4", to_end="boot-1", cordoned=True),
    )
    jobs = pod("train", "Job", node="w1")
    operation = NodeReboot(nodes=("w1", "w2", "w3", "w4"), max_unavailable="3")
    plan = planned(six, *left, jobs, names=operation.nodes, max_unavailable="3")
    assert {step.name: step.names for step in plan.steps} == {
        "cordon-1": ("w3",),
        "reboot-1": ("w2", "w3", "w4"),
        "ready-1": ("w2", "w3", "w4"),
        "health-1": ("w2", "w3", "w4"),
        "uncordon-1": ("w2", "w3"),
        "forget": ("w1", "w2", "w3", "w4"),
    }
    assert plan.steps[-1].hosts[0].reasons == snapshot
    said = operation.question(plan, plan.hosts)
    assert said == snapshot


def test_jobs_are_named_and_refused_without_force(six: Site, snapshot: SnapshotAssertion) -> None:
    with raises("node-runs-jobs") as caught:
        planned(six, pod("train", "Job", node="w1"))
    assert caught.value.details == snapshot
    assert planned(six, pod("train", "Job", node="w1"), force=True).steps


@pytest.mark.parametrize(("name", "word"), [("master", "control-plane"), ("w9", "not a present machine")])
def test_other_machines_than_workers_are_refused(six: Site, name: str, word: str) -> None:
    with pytest.raises(PaiError, match=word) as caught:
        NodeReboot(nodes=(name,)).require(six)
    assert caught.value.exit_code is ExitCode.USAGE


@given(names=st.permutations(ALL), size=st.integers(1, 6))
def test_batches_cover_every_machine_once_and_wait_for_each_other(six: Site, names: list[str], size: int) -> None:
    plan = planned(six, names=tuple(names), max_unavailable=str(size))
    reboots = [step for step in plan.steps if step.name.startswith("reboot-")]
    assert [host for step in reboots for host in step.names] == names
    assert all(len(step.names) <= size for step in reboots)
    gates = {step.name for step in plan.steps}
    assert [step.name for step in plan.steps if "-" not in step.name] == ["mark", "forget"]
    gates -= {"mark", "forget"}
    for step in plan.steps[1:-1]:
        number = int(step.name.rpartition("-")[2])
        before = {name for name in gates if int(name.rpartition("-")[2]) == number - 1}
        assert before <= set(step.after_all)
