"""Reboots: batch by batch, each given back before the next one begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_install.errors import ExitCode, PaiError
from pai_install.operations.node_reboot import NodeReboot
from pai_install.plan.model import ClusterCalls, Inventory, LocalWork, Plan, Playbook
from pai_install.plan.observation import Observation
from pai_install.site import Site
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
        "cordon-1", "drain-1", "reboot-1", "ready-1", "health-1", "uncordon-1",
    ]  # fmt: skip
    reboot, ready, health = plan.steps[2:5]
    assert reboot.action == Playbook("reboot.yml", {"pai_reboot_timeout": 600})
    assert isinstance(ready.action, ClusterCalls)
    assert ready.action.calls[0].arguments == {"node": "w1", "boot": "boot-1", "timeout_s": 600}
    assert health.action == LocalWork("health-gate")


def test_a_node_that_was_out_of_scheduling_stays_so(six: Site) -> None:
    plan = planned(six, names=("w1",), cordoned=True)
    assert [step.name for step in plan.steps] == ["reboot-1", "ready-1", "health-1"]


def test_jobs_are_named_and_refused_without_force(six: Site) -> None:
    with pytest.raises(PaiError, match="jobs run there") as caught:
        planned(six, pod("train", "Job", node="w1"))
    assert caught.value.details == "w1: stops Job ml/job-a, 1 running"
    assert planned(six, pod("train", "Job", node="w1"), force=True).steps


@pytest.mark.parametrize(("name", "word"), [("master", "control plane"), ("w9", "not a present machine")])
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
    for step in plan.steps:
        number = int(step.name.rpartition("-")[2])
        before = {name for name in gates if int(name.rpartition("-")[2]) == number - 1}
        assert before <= set(step.after_all)
