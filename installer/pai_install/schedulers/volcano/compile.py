"""Virtual clusters as queues of Volcano, side by side; its plugins `capacity` and `nodegroup` keep them. Pure.

A queue knows resources, not machines: which SKUs are its own is said by groups of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pai_install.schedulers.volcano.policies import policies
from pai_install.scheduling import amounts
from pai_install.scheduling.amounts import CPU, MEMORY, Amount
from pai_install.scheduling.model import Scheduling, Share, VirtualCluster
from pai_install.scheduling.priorities import pod_priorities, priority_policy

Object = dict[str, Any]
_Part = Callable[[Scheduling, VirtualCluster, str], Amount]

# the node label whose value is the group that Volcano's plugin counts a machine to
GROUP_LABEL = "volcano.sh/nodegroup-name"
# Volcano makes it by itself, and lets no one delete it
_OWN_QUEUE = "default"
_NOT_OURS: Object = {"annotations": {"pai-install/removal": "release"}}


def volcano_objects(scheduling: Scheduling) -> Iterator[Object]:
    """Priorities, a queue per virtual cluster, and what the API server refuses beside them."""
    yield from pod_priorities(preempts=True)
    for cluster in scheduling.clusters:
        yield queue(scheduling, cluster)
    yield from priority_policy(scheduling)
    yield from policies(scheduling)


def volcano_labels(scheduling: Scheduling, machine: str) -> Mapping[str, str]:
    """The label that says whose queues may use a machine: those with a share of its SKU, or only its owner's."""
    owner = scheduling.pinned.get(machine)
    return {GROUP_LABEL: _own_group(owner) if owner is not None else scheduling.skus[machine]}


def _own_group(cluster: str) -> str:
    return f"own.{cluster}"


def queue(scheduling: Scheduling, cluster: VirtualCluster) -> Object:
    """guarantee: what is never lent. deserved: what is taken back from anyone. capability: with what it may borrow."""
    spec: Object = {
        "reclaimable": True,
        "guarantee": {"resource": _sum(scheduling, cluster, _kept)},
        "deserved": _sum(scheduling, cluster, amounts.owned),
    }
    capability = _capability(scheduling, cluster)
    groups = _groups(cluster)
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": cluster.name, **(_NOT_OURS if cluster.name == _OWN_QUEUE else {})},
        "spec": {
            **spec,
            **({"capability": capability} if capability else {}),
            **({"affinity": {"nodeGroupAffinity": groups}} if groups else {}),
        },
    }


def _sum(scheduling: Scheduling, cluster: VirtualCluster, part: _Part) -> dict[str, str]:
    """Resource -> quantity, of all SKUs together; `part` gives the amount of one."""
    of_sku: dict[str, Amount] = {sku: part(scheduling, cluster, sku) for sku in scheduling.supply}
    total = sum(of_sku.values(), Amount())
    return {
        **{name: amounts.count(_units(scheduling, of_sku, name)) for name in amounts.devices_of(scheduling)},
        CPU: amounts.cpu(total.cpu_millis),
        MEMORY: amounts.memory(total.memory_bytes),
    }


def _units(scheduling: Scheduling, of_sku: Mapping[str, Amount], resource: str) -> int:
    return sum(amount.units for sku, amount in of_sku.items() if scheduling.supply[sku].resource == resource)


def _kept(scheduling: Scheduling, cluster: VirtualCluster, sku: str) -> Amount:
    """What others may never use: the share without what is lent, and machines of its own."""
    whole, lent = amounts.owned(scheduling, cluster, sku), amounts.lent(scheduling, cluster, sku)
    return Amount(whole.units - lent.units, whole.cpu_millis - lent.cpu_millis, whole.memory_bytes - lent.memory_bytes)


def _most(scheduling: Scheduling, cluster: VirtualCluster, sku: str) -> Amount:
    return amounts.owned(scheduling, cluster, sku) + (amounts.borrowed(scheduling, cluster, sku) or Amount())


def _capability(scheduling: Scheduling, cluster: VirtualCluster) -> dict[str, str]:
    """No limit of a resource of which the virtual cluster may use whatever is idle."""
    unlimited = {sku for sku in scheduling.supply if amounts.borrowed(scheduling, cluster, sku) is None}
    open_ones = {scheduling.supply[sku].resource for sku in unlimited}
    most = _sum(scheduling, cluster, _most)
    shared = {CPU, MEMORY} if unlimited else set()
    return {name: amount for name, amount in most.items() if name not in open_ones | shared}


def _groups(cluster: VirtualCluster) -> Object:
    """Groups of nodes that its pods may use. Those that are preferred score less than those that are required."""
    own = [_own_group(cluster.name)] if cluster.pinned else []
    shared = [share.sku for share in cluster.shares]
    if not (own and shared):
        return {"requiredDuringSchedulingIgnoredDuringExecution": own or shared} if own or shared else {}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": own,
        "preferredDuringSchedulingIgnoredDuringExecution": shared,
    }


def volcano_remarks(scheduling: Scheduling) -> Iterator[str]:
    """What Volcano does not keep of what was asked."""
    yield "pods are taken back, not jobs: a job needs the policy PodEvicted -> RestartJob, or a part of it stays"
    yield "a job that names no priority has 0, between test and oppo"
    for cluster in scheduling.clusters:
        yield from _mixed(scheduling, cluster)
    if scheduling.levels:
        yield f"jobs are not placed by {' or '.join(level.name for level in scheduling.levels)}"


def _mixed(scheduling: Scheduling, cluster: VirtualCluster) -> Iterator[str]:
    for name in amounts.devices_of(scheduling):
        shares = [it for it in cluster.shares if scheduling.supply[it.sku].resource == name]
        if len(shares) > 1:
            yield f"{cluster.name}: {_named(shares)} are one quota of {name}: a queue counts resources, not machines"


def _named(shares: list[Share]) -> str:
    return " and ".join(share.sku for share in shares)
