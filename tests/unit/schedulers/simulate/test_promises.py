"""What a verdict must never say, on random clusters."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_install.schedulers.simulate.manifest import CELLS
from pai_install.schedulers.simulate.model import ClusterNow, Forecast, NewJob, RunningJob
from pai_install.schedulers.simulate.place import TOLERANCE
from pai_install.schedulers.simulate.verdict import simulate
from pai_install.scheduling.amounts import guaranteed, owned
from pai_install.scheduling.model import BACKENDS, PRIORITIES, Backend, Scheduling
from pai_install.scheduling.usage.amounts import units_of
from tests.unit.schedulers.simulate.clusters import contested, questions, unit_of

pytestmark = pytest.mark.parametrize("backend", BACKENDS)


def needs(asked: NewJob, verdict: Forecast) -> dict[str, dict[str, float]]:
    """MachineNow -> what the pods that are placed there ask for."""
    asks = {role.name: role.asks for role in asked.roles}
    found: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in verdict.placed:
        for name, amount in asks[row.role].items():
            found[row.machine][name] += amount * row.pods
    return {machine: dict(amounts) for machine, amounts in found.items()}


def victims_of(found: ClusterNow, verdict: Forecast) -> list[RunningJob]:
    """The jobs that go."""
    return [job for victim in verdict.victims for job in found.jobs if job.name == victim.job]


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_whatever_starts_has_room_for_all_of_it(backend: Backend, data: Any) -> None:
    scheduling, found, asked = data.draw(questions(backend) | contested(backend))
    _, verdict = simulate(scheduling, found, asked)
    starts = verdict.outcome in {"starts", "takes-back"}
    assert bool(verdict.placed) == starts
    assert bool(verdict.victims) == (verdict.outcome == "takes-back")
    assert verdict.why or starts
    if not starts:
        return
    assert sum(row.pods for row in verdict.placed) == asked.pods
    machines = {it.name: it for it in found.machines}
    gone = victims_of(found, verdict)
    for name, amounts in needs(asked, verdict).items():
        assert not machines[name].away
        assert scheduling.pinned.get(name) in {None, asked.cluster} or backend == "default"
        for resource, amount in amounts.items():
            back = sum(job.on.get(name, {}).get(resource, 0.0) for job in gone)
            assert amount <= machines[name].free.get(resource, 0.0) + back + TOLERANCE


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_nothing_is_taken_from_who_keeps_to_the_guarantee(backend: Backend, data: Any) -> None:
    scheduling, found, asked = data.draw(contested(backend))
    _, verdict = simulate(scheduling, found, asked)
    gone = victims_of(found, verdict)
    assert backend != "default" or not gone
    for number, job in enumerate(gone):
        if job.cluster == asked.cluster:
            assert job.borrows or job.priority < PRIORITIES[asked.priority]
        elif backend == "hived":
            assert job.borrows
        else:
            left = [it for it in found.jobs if it not in gone[:number]]
            assert beyond_guarantee(scheduling, left, job.cluster)


def beyond_guarantee(scheduling: Scheduling, jobs: list[RunningJob], name: str) -> bool:
    """Whether a virtual cluster has more of any machine type, or resource, than it is guaranteed."""
    cluster = scheduling.cluster(name)
    for sku, supply in scheduling.supply.items():
        resource = unit_of(scheduling, supply.machines[0])
        machines = [it for it in supply.machines if scheduling.pinned.get(it) != name]
        shared = sum(job.on.get(it, {}).get(resource, 0.0) for job in jobs if job.cluster == name for it in machines)
        if units_of(supply, shared) > guaranteed(scheduling, cluster, sku).units:
            return True
    return False


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_the_idle_machines_of_one_that_asks_for_its_guarantee_are_its_own(backend: Backend, data: Any) -> None:
    """A pod of one unit, within a guarantee of which nothing is in use, never has to wait where no machine is away."""
    scheduling, found, asked = data.draw(questions(backend))
    cluster = scheduling.cluster(asked.cluster)
    sku = data.draw(st.sampled_from(sorted(scheduling.supply)))
    supply = scheduling.supply[sku]
    if not supply.resource or not guaranteed(scheduling, cluster, sku).units or asked.priority == "oppo":
        return
    if any(it.away for it in found.machines) or asked.namespace not in cluster.namespaces[:1]:
        return
    if any(job.cluster == asked.cluster for job in found.jobs) or (backend == "default" and found.jobs):
        return
    one = {CELLS if backend == "hived" else supply.resource: 1.0}
    single = NewJob("one", (type(asked.roles[0])("pod", 1, one),), asked.cluster, asked.namespace, asked.priority)
    _, verdict = simulate(scheduling, found, single)
    if backend == "default" and owned(scheduling, cluster, sku).units < len(cluster.namespaces):
        return
    assert verdict.outcome in {"starts", "takes-back"}, verdict
