"""Clusters as a job finds them, written down or drawn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from pai_install.schedulers.kueue.compile import flavor_name
from pai_install.schedulers.simulate.manifest import CELLS
from pai_install.schedulers.simulate.model import ClusterNow, GangRole, MachineNow, NewJob, RunningJob
from pai_install.scheduling.model import PRIORITIES, Backend, Scheduling, VirtualCluster
from pai_install.scheduling.usage.amounts import resource_of
from tests.unit.scheduling.sites import divided_sites

GPU = "nvidia.com/gpu"
# cores and memory are not what these are about
PLENTY = {"cpu": 10_000.0, "memory": 1e15}


def unit_of(scheduling: Scheduling, machine: str) -> str:
    """What is counted on a machine."""
    return CELLS if scheduling.backend == "hived" else resource_of(scheduling.supply[scheduling.skus[machine]])


def pool_of(scheduling: Scheduling, cluster: str, machine: str) -> str:
    """What the scheduler counts a machine's units by."""
    sku = scheduling.skus[machine]
    if scheduling.backend == "kueue":
        owner = scheduling.cluster(cluster) if scheduling.pinned.get(machine) == cluster else None
        return flavor_name(scheduling, sku, owner)
    return sku if scheduling.backend == "hived" else ""


def running(
    scheduling: Scheduling,
    cluster: str,
    name: str,
    on: dict[str, int],
    priority: int = 10,
    since: str = "",
    *,
    borrows: bool = False,
) -> RunningJob:
    """on: machine -> units."""
    uses: defaultdict[tuple[str, str], float] = defaultdict(float)
    for machine, units in on.items():
        uses[pool_of(scheduling, cluster, machine), unit_of(scheduling, machine)] += units
    places = {machine: {unit_of(scheduling, machine): float(units)} for machine, units in on.items()}
    return RunningJob(cluster, f"{cluster}/{name}", priority, places, dict(uses), since, borrows)


def snapshot(scheduling: Scheduling, *jobs: RunningJob, away: Sequence[str] = ()) -> ClusterNow:
    """All machines of the site, with what the jobs leave."""
    machines = []
    for name, sku in scheduling.skus.items():
        unit, units = unit_of(scheduling, name), float(scheduling.supply[sku].units)
        taken = sum(job.on.get(name, {}).get(unit, 0.0) for job in jobs)
        plenty = {key: amount for key, amount in PLENTY.items() if key != unit}
        reason = "is cordoned" if name in away else ""
        whole, free = {**plenty, unit: units}, {**plenty, unit: units - taken}
        machines.append(MachineNow(name, sku, whole, free, {"kubernetes.io/hostname": name}, away=reason))
    spaces: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for job in jobs:
        for space in scheduling.cluster(job.cluster).namespaces[:1]:
            for (_, resource), amount in job.uses.items():
                spaces[space][resource] += amount
    return ClusterNow(tuple(machines), jobs, spaces)


def gang(
    cluster: str, pods: int, units: float, namespace: str = "", priority: str = "test", resource: str = GPU
) -> NewJob:
    """Pods that are alike."""
    return NewJob("train", (GangRole("worker", pods, {resource: units}),), cluster, namespace or cluster, priority)


@st.composite
def questions(draw: st.DrawFn, backend: Backend) -> tuple[Scheduling, ClusterNow, NewJob]:
    """A divided site that is well used, and one more job of about what its virtual cluster is guaranteed."""
    scheduling = draw(divided_sites(backend))
    scheduling = replace(scheduling, clusters=tuple(map(with_a_group, scheduling.clusters)))
    left = {name: scheduling.supply[sku].units for name, sku in scheduling.skus.items()}
    jobs = []
    for number in range(draw(st.integers(0, 5))):
        cluster = draw(st.sampled_from(scheduling.clusters))
        kind = draw(st.sampled_from(sorted({unit_of(scheduling, it) for it in left})))
        may = [it for it in left if left[it] and unit_of(scheduling, it) == kind]
        may = [it for it in may if scheduling.pinned.get(it) in {None, cluster.name}]
        on = {it: draw(st.sampled_from([left[it], left[it], 1])) for it in may[: draw(st.integers(1, 3))]}
        for machine, units in on.items():
            left[machine] -= units
        if on:
            priority = draw(st.sampled_from(list(PRIORITIES.values())))
            jobs.append(running(scheduling, cluster.name, str(number), on, priority, borrows=priority < 0))
    cluster = draw(st.sampled_from(scheduling.clusters))
    machine = draw(st.sampled_from(sorted(left)))
    most = scheduling.supply[scheduling.skus[machine]].units
    asks = st.fixed_dictionaries({unit_of(scheduling, machine): st.integers(1, most + 1).map(float)})
    roles = tuple(
        GangRole(f"role-{number}", draw(st.integers(1, 3)), draw(asks)) for number in range(draw(st.integers(1, 2)))
    )
    allowed = [name for name, value in PRIORITIES.items() if value <= PRIORITIES[cluster.highest]]
    away = draw(st.lists(st.sampled_from(sorted(left)), max_size=1))
    asked = NewJob("new", roles, cluster.name, cluster.namespaces[0], draw(st.sampled_from(allowed)))
    return scheduling, snapshot(scheduling, *jobs, away=away), asked


@st.composite
def contested(draw: st.DrawFn, backend: Backend) -> tuple[Scheduling, ClusterNow, NewJob]:
    """Every device is in use, and one who is guaranteed some asks for one or two of them, with a high priority."""
    scheduling, found, asked = draw(questions(backend))
    guests = VirtualCluster("guests", (), groups=("guests",), namespaces=("guests",))
    scheduling = replace(scheduling, clusters=(*scheduling.clusters, guests))
    others = [it for it in scheduling.clusters if it.name != asked.cluster]
    jobs = list(found.jobs) if draw(st.booleans()) else []
    owed = {(it.name, share.sku): share.units for it in others for share in it.shares}
    for machine in snapshot(scheduling, *jobs).machines:
        unit, owner = unit_of(scheduling, machine.name), scheduling.pinned.get(machine.name)
        if units := int(machine.free[unit]):
            # whoever is guaranteed as much first: of these nothing may be taken
            keeps = next((it.name for it in others if owed.get((it.name, machine.sku), 0) >= units), None)
            user = owner or keeps or draw(st.sampled_from(others)).name
            owed[user, machine.sku] = owed.get((user, machine.sku), 0) - units
            fill = running(scheduling, user, f"on-{machine.name}", {machine.name: units}, -1, borrows=not owner)
            jobs.append(fill)
    cluster = scheduling.cluster(asked.cluster)
    skus = [share.sku for share in cluster.shares if share.units] or [next(iter(scheduling.supply))]
    unit = unit_of(scheduling, scheduling.supply[draw(st.sampled_from(skus))].machines[0])
    role = GangRole("pods", draw(st.integers(1, 2)), {unit: 1.0})
    return scheduling, snapshot(scheduling, *jobs), replace(asked, roles=(role,), priority=cluster.highest)


def with_a_group(cluster: VirtualCluster) -> VirtualCluster:
    """One that may submit."""
    return cluster if cluster.namespaces else replace(cluster, groups=("all",), namespaces=("all",))
