"""Use cases of nodes in the cluster: GPUs with their jobs, findings with their actions, and services. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Action, Verdict
from pai_install.health.act.cordon import reason_of
from pai_install.health.cluster.conditions import node_finding
from pai_install.health.judge.rules import CHECKS
from pai_install.jobs.pod_status import Instance
from pai_install.jobs.state import JobState
from pai_install.kube.model import Node, Pod
from pai_install.kube.objects import JsonObject, child, text, words
from pai_install.scheduling.amounts import devices_of
from pai_install.scheduling.model import Scheduling
from pai_install.scheduling.usage.health import lacks
from pai_install.scheduling.usage.pods import devices_in_use

# used: by a job. other: by a pod that is no job. free: for jobs. sick: not offered, or the node is not Ready.
# cordoned: free on a node that starts no pods.
GpuState = Literal["used", "other", "free", "sick", "cordoned"]
_GRAVITY = {Verdict.FAIL: 0, Verdict.WARN: 1}
_HASH = "pod-template-hash"
_MISSING = "restore the device: pai-install health --limit {name} shows its state"


@dataclass(frozen=True, slots=True)
class GpuGroup:
    """Equal GPUs of a node. job, instance: of GPUs in use by a job."""

    use: GpuState
    count: int
    job: JobState | None = None
    instance: Instance | None = None


@dataclass(frozen=True, slots=True)
class NodeGpus:
    """A node with its GPUs. sku: its machine type, "" for a node without jobs. ready, cordoned: as the API says."""

    name: str
    sku: str
    ready: bool
    cordoned: bool
    groups: tuple[GpuGroup, ...]

    def count(self, use: GpuState) -> int:
        """GPUs of this use."""
        return sum(group.count for group in self.groups if group.use == use)

    @property
    def total(self) -> int:
        """All GPUs."""
        return sum(group.count for group in self.groups)


def nodes_with_gpus(
    scheduling: Scheduling, nodes: Iterable[JsonObject], pods: Iterable[JsonObject], jobs: Iterable[JobState]
) -> tuple[NodeGpus, ...]:
    """All nodes by name. Machines of the site that are no nodes are sick. pods: with devices, and of no job."""
    found = {node.name: node for node in map(Node.parse, nodes)}
    devices = devices_of(scheduling)
    requested = devices_in_use(scheduling, pods)
    holders: defaultdict[str, list[GpuGroup]] = defaultdict(list)
    for job in jobs:
        for role in job.roles:
            for one in role.holders if role.gpus else ():
                holders[one.machine].append(GpuGroup("used", role.gpus, job, one))
    names = sorted({*found, *scheduling.skus})
    return tuple(
        _node(name, found.get(name), scheduling, devices, holders.get(name, []), requested.get(name, 0))
        for name in names
    )


def _node(
    name: str, node: Node | None, scheduling: Scheduling, devices: Iterable[str], held: list[GpuGroup], others: int
) -> NodeGpus:
    sku = scheduling.skus.get(name, "")
    supply = scheduling.supply.get(sku)
    offered = int(sum(node.allocatable.get(resource, 0) for resource in devices)) if node is not None else 0
    whole = max(offered, supply.units if supply is not None and supply.resource else 0)
    used = sum(group.count for group in held)
    ready, cordoned = node is not None and node.ready is True, node is not None and node.cordoned is True
    idle = max(0, offered - used - others)
    left: GpuState = "sick" if not ready else "cordoned" if cordoned else "free"
    rest = (("other", others), (left, idle), ("sick", max(0, whole - max(offered, used + others))))
    groups = (*held, *(GpuGroup(use, count) for use, count in rest if count))  # type: ignore[arg-type] # literals
    return NodeGpus(name, sku, ready, cordoned, groups)


def node_findings(scheduling: Scheduling, nodes: Sequence[JsonObject]) -> tuple[Finding, ...]:
    """What is wrong with the nodes, the worst first. nodes: as the API gives them."""
    found = {node.name: node for node in map(Node.parse, nodes)}
    newest = max((node.version for node in found.values()), key=_version, default="")
    missing = {lack.machine: lack.why for supply in scheduling.supply.values() for lack in lacks(supply, nodes)}
    findings = [
        finding
        for name in sorted({*found, *scheduling.skus})
        for finding in _findings(name, found.get(name), newest, missing.get(name, ""))
    ]
    return tuple(sorted(findings, key=lambda one: (_GRAVITY.get(one.verdict, 2), -one.action.rank)))


def _findings(name: str, node: Node | None, newest: str, missing: str) -> Iterator[Finding]:
    finding = node_finding(name, node, newest)
    by_health = _cordoned_by_health(node) if node is not None else None
    if by_health is not None:
        yield by_health
    if finding.verdict is not Verdict.PASS and not (by_health is not None and finding.verdict is Verdict.WARN):
        yield finding
    if node is not None and missing.startswith("offers "):
        remedy = _MISSING.format(name=name)
        yield Finding("gpu-count", Verdict.FAIL, name, f"the node {missing} GPUs or cores", remedy=remedy)


def _cordoned_by_health(node: Node) -> Finding | None:
    """The check for which `health --act cordon` cordoned a node."""
    reason = reason_of(node)
    if not reason:
        return None
    check = CHECKS.get(reason)
    title, remedy, action = (check.title, check.remedy, check.action) if check is not None else ("", "", Action.NONE)
    message = f"cordoned after a failed check: {title or reason}"
    return Finding(reason, Verdict.FAIL, node.name, message, remedy=remedy, action=action)


def _version(word: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() and len(part) < 9 else 0 for part in word.split(".")[:3])


@dataclass(frozen=True, slots=True)
class SystemService:
    """Pods of one controller, those that do not run first. ready: number of pods that run. why: of the first that does
    not.
    """

    namespace: str
    name: str
    kind: str
    pods: tuple[Pod, ...]
    ready: int
    restarts: int
    nodes: tuple[str, ...]
    why: str = ""


def services_of(pods: Iterable[JsonObject]) -> tuple[SystemService, ...]:
    """Services of the system, those that do not run first. pods: no pods of users."""
    groups: defaultdict[tuple[str, str, str], list[Pod]] = defaultdict(list)
    for item in pods:
        pod = Pod.parse(item)
        kind, name = _controller(pod, words(child(item, "metadata").get("labels")))
        groups[pod.namespace, name, kind].append(pod)
    found = [_service(*key, members) for key, members in groups.items()]
    return tuple(sorted(found, key=lambda one: (one.ready == len(one.pods), one.namespace, one.name)))


def _service(namespace: str, name: str, kind: str, pods: Sequence[Pod]) -> SystemService:
    ordered = tuple(sorted(pods, key=lambda pod: (pod.well, pod.name)))
    sick = [pod for pod in ordered if not pod.well]
    nodes = tuple(sorted({pod.node for pod in pods if pod.node}))
    why = next((pod.why or pod.phase for pod in sick), "")
    restarts = sum(pod.restarts for pod in pods)
    return SystemService(namespace, name, kind, ordered, len(pods) - len(sick), restarts, nodes, why)


def _controller(pod: Pod, labels: Mapping[str, str]) -> tuple[str, str]:
    """Kind and name. A Deployment is named in place of its ReplicaSet, and a static pod without its node."""
    if pod.owner is None:
        return "Pod", pod.name
    if pod.owner.kind == "ReplicaSet" and (mark := text(labels.get(_HASH))):
        return "Deployment", pod.owner.name.removesuffix(f"-{mark}")
    if pod.owner.kind == "Node":
        return "static pod", pod.name.removesuffix(f"-{pod.owner.name}")
    return pod.owner.kind, pod.owner.name
