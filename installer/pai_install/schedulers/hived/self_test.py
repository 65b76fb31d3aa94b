"""The self-test's jobs for HiveD, and the virtual cluster that they are tried in. Pure.

HiveD divides the machines by a configuration that it reads when it starts. So the test has no queue and no devices of
its own: it is played in a virtual cluster of the site, one scenario after the other, while no job has or wants any
machine of that SKU. Its pods hold cells, as users' do, and no device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pai_install.kube.objects import JsonObject as Found
from pai_install.kube.objects import child, text
from pai_install.schedulers.hived.compile import class_value
from pai_install.schedulers.hived.placement import rooms
from pai_install.schedulers.hived.usage import hived_pods
from pai_install.schedulers.self_test.driver import SelfTestDriver
from pai_install.schedulers.self_test.model import Gang, Scenario, is_place
from pai_install.schedulers.self_test.objects import (
    CELL_PRIORITIES,
    CellSite,
    JsonObject,
    SelfTestContext,
    job_spec,
    meta,
)
from pai_install.schedulers.self_test.scenarios import Bounds, on_cells, on_cores
from pai_install.scheduling.job_queue import HIVED_MARKER, HIVED_SCHEDULER, HIVED_SPEC, leaf_types
from pai_install.scheduling.model import PRIORITIES, Priority, Scheduling, Supply, VirtualCluster
from pai_install.scheduling.usage.health import lacks

JOBS = ("jobsets.jobset.x-k8s.io",)
CONTROLLERS = ("pai-hived", "pai-jobset")
_GUEST = "guest"
# who borrows has HiveD's priority for that, and the site's own class of it
_BORROWS: Priority = "oppo"
# what shows a gang that waits beside another, and the most pods that a test should need
_LEAST, _MOST = 3, 64
_WANTED = 4
# as often as an owner comes, and HiveD gives a gang that was evicted its old place meanwhile
_RESTARTS = 10


@dataclass(frozen=True, slots=True)
class Act:
    """A scenario, and where it is played."""

    stage: CellSite
    scenario: Scenario


@dataclass(frozen=True, slots=True)
class Programme:
    """What can be played now. reasons: check -> why it cannot be tried."""

    acts: tuple[Act, ...]
    reasons: Mapping[str, str]


def programme(scheduling: Scheduling, nodes: Iterable[Found], pods: Iterable[Found], bounds: Bounds) -> Programme:
    """Played in the smallest guarantee of devices that is idle, and the smallest of cores."""
    known, foreign = tuple(nodes), tuple(pod for pod in pods if not _of_the_test(pod))
    found = [_stage(scheduling, *one, known, foreign) for one in _shares(scheduling)]
    stages = sorted(
        (it for it in found if isinstance(it, CellSite)), key=lambda it: (not it.devices, it.room * it.unit)
    )
    refused = "; ".join(dict.fromkeys(it for it in found if isinstance(it, str)))
    if not stages:
        return Programme((), dict.fromkeys(_checks(bounds), refused or "no virtual cluster is guaranteed anything"))
    stage = stages[0]
    acts = [Act(stage, one) for one in on_cells(bounds, HIVED_MARKER, stage.room, _total(stage))]
    plain = next((it for it in stages if not it.devices), None)
    if plain is not None:
        acts.append(Act(plain, on_cores(bounds, HIVED_MARKER, plain.room)))
    return Programme(tuple(acts), dict(_reasons(stage, refused)))


def _reasons(stage: CellSite, refused: str) -> Iterator[tuple[str, str]]:
    """Why what a full programme has may be missing."""
    why = f"{stage.cluster} has all machines of {stage.sku}: no other virtual cluster can lend"
    if stage.total > stage.room:
        why = f"all {stage.sku} would be held, by {stage.total} pods, but the test starts at most {_MOST}"
    yield from ((f"scheduler-{name}", why) for name in ("borrow", "reclaim"))
    yield "scheduler-cores", refused or "no virtual cluster is guaranteed machines without devices"


def _total(stage: CellSite) -> int:
    return stage.total if stage.total <= _MOST else 0


def _checks(bounds: Bounds) -> Iterator[str]:
    """All that HiveD promises to pass, but for what is shown without a virtual cluster."""
    for scenario in (*on_cells(bounds, HIVED_MARKER, _LEAST, _WANTED), on_cores(bounds, HIVED_MARKER, _LEAST)):
        yield from scenario.checks


def _shares(scheduling: Scheduling) -> Iterator[tuple[VirtualCluster, Supply]]:
    for cluster in scheduling.clusters:
        if PRIORITIES[cluster.highest] >= CELL_PRIORITIES["high"]:
            for share in cluster.shares:
                if share.units:
                    yield cluster, scheduling.supply[share.sku]


def _stage(
    scheduling: Scheduling,
    cluster: VirtualCluster,
    supply: Supply,
    nodes: tuple[Found, ...],
    pods: tuple[Found, ...],
) -> CellSite | str:
    """The stage, or why the share is none."""
    if busy(scheduling, supply.sku, pods):
        return f"jobs have or want {supply.sku}: it is tried while none does"
    if lacking := lacks(supply, nodes):
        return f"not all {supply.sku} are there: {lacking[0].machine} {lacking[0].why}"
    share = cluster.share(supply.sku)
    units = share.units if share is not None else 0
    unit = _unit(supply.units, units)
    if scheduling.block is not None:  # a gang is in one chain, and its cells may be smaller than a machine
        pools = [one for one in rooms(scheduling, cluster.name, opportunistic=False) if one.sku == supply.sku]
        unit, units = 1, max((one.total for one in pools), default=0)
    room = units // supply.units * (supply.units // unit) if unit > 1 else units
    if not _LEAST <= room <= _MOST:
        return f"{cluster.name} has room for {room} pods of {supply.sku}, but the test needs {_LEAST} to {_MOST}"
    guests = [one.name for one in scheduling.clusters if one is not cluster and one.share(supply.sku) is not None]
    return CellSite(
        cluster=cluster.name,
        guest=(guests or [cluster.name])[0],
        sku=supply.sku,
        leaf=leaf_types(scheduling.supply)[supply.sku],
        unit=unit,
        room=room,
        total=_total_of(scheduling, supply, unit, room),
        devices=bool(supply.resource),
    )


def _total_of(scheduling: Scheduling, supply: Supply, unit: int, room: int) -> int:
    """Pods that all machines have room for.

    With several chains of an SKU it is `room`: opportunistic jobs could use the other chains.
    """
    if scheduling.block is not None:
        chains = [one for one in rooms(scheduling, "", opportunistic=True) if one.sku == supply.sku]
        return chains[0].total if len(chains) == 1 else room
    return len(supply.machines) * (supply.units // unit)


def _unit(on_machine: int, guaranteed: int) -> int:
    """The most cells of a pod with which whole machines have room for enough of them, and nothing is left over."""
    whole = guaranteed // on_machine
    parts = (it for it in range(on_machine, 0, -1) if on_machine % it == 0)
    return next((it for it in parts if whole * (on_machine // it) >= _WANTED), 1)


def busy(scheduling: Scheduling, sku: str, pods: Iterable[Found]) -> bool:
    """Whether a job that is not the test's has machines of that SKU, or waits for any."""
    found = hived_pods(pod for pod in pods if not _of_the_test(pod))
    return any(not pod.node or scheduling.skus.get(pod.node) == sku for pod in found)


def _of_the_test(pod: Found) -> bool:
    return is_place(text(child(pod, "metadata").get("namespace")))


def gang_objects(context: SelfTestContext, scenario: Scenario, gang: Gang) -> tuple[JsonObject, ...]:
    """A JobSet that is one affinity group, and begins again as a whole when it loses a pod: as users' jobs do."""
    roles = [
        {"name": f"role-{number}", "replicas": 1, "template": {"spec": _job(context, scenario, gang, pods)}}
        for number, pods in enumerate(gang.tasks)
    ]
    spec = {"replicatedJobs": roles, "failurePolicy": {"maxRestarts": _RESTARTS}}
    metadata = meta(context, gang.name, scenario.namespace, gang.name)
    return ({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": spec},)


def _job(context: SelfTestContext, scenario: Scenario, gang: Gang, pods: int) -> JsonObject:
    assert context.cells is not None  # noqa: S101 - HiveD's scenarios come with one
    borrows = gang.queue == _GUEST
    cluster = context.cells.guest if borrows else context.cells.cluster
    spec = job_spec(context, scenario, gang, pods)
    template = spec["template"]
    template["metadata"]["annotations"] = {HIVED_SPEC: _annotation(context, context.cells, scenario, gang)}
    template["spec"]["schedulerName"] = f"{HIVED_SCHEDULER}{cluster}"
    if borrows:
        template["spec"]["priorityClassName"] = _BORROWS
    return {**spec, "backoffLimit": 0}


def _annotation(context: SelfTestContext, stage: CellSite, scenario: Scenario, gang: Gang) -> str:
    borrows = gang.queue == _GUEST
    lines = [
        f"virtualCluster: {stage.guest if borrows else stage.cluster}",
        f"priority: {PRIORITIES[_BORROWS] if borrows else CELL_PRIORITIES[gang.rank]}",
        f"leafCellType: {stage.leaf}",
        f"leafCellNumber: {stage.unit}",
        "ignoreK8sSuggestedNodes: false",
        "affinityGroup:",
        f"  name: {scenario.namespace}.{gang.name}.{context.run}",
        "  members:",
        f"  - podNumber: {gang.size}",
        f"    leafCellNumber: {stage.unit}",
    ]
    return "\n".join(lines)


_UNSUPPORTED = {
    "scheduler-requeue": "HiveD gives all pods of a job their cells at once: quota is never given without room"
}
DRIVER = SelfTestDriver(
    JOBS,
    gang_objects,
    namespaces=CONTROLLERS,
    unsupported=_UNSUPPORTED,
    priorities={rank: class_value(priority) for rank, priority in CELL_PRIORITIES.items()},
    knows_devices=False,
)
