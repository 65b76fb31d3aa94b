"""A site of 200 machines of 8 GPUs in 10 virtual clusters, and gangs that ask for nearly three times as much. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pai_install.scheduling.job_queue import HIVED_MARKER, HIVED_SCHEDULER, HIVED_SPEC
from pai_install.scheduling.model import HOST_LABEL, SKU_LABEL, Backend, Scheduling, Share, Supply, VirtualCluster
from tests.perf.fake_kubelets import MARK

Object = dict[str, Any]

MACHINES, UNITS, GANGS, CLUSTERS = 200, 8, 500, 10
GPU = "nvidia.com/gpu"
# not pai-...: those namespaces are the system's, and Kueue is not asked about them
NAME = "scheduler-bench"
# labels of pods: whose they are, and how many GPUs each has
GANG_LABEL, UNITS_LABEL = "pai-bench/gang", "pai-bench/units"
# pods of a gang, GPUs of a pod; in turn
_SIZES = ((1, 8), (2, 8), (4, 4), (8, 1), (4, 2), (2, 4), (1, 1), (1, 2), (2, 8), (1, 4))


@dataclass(frozen=True, slots=True)
class Result:
    """seconds: until the last pod was bound. partial: gangs of which some pods have GPUs and some have none."""

    name: str
    seconds: float
    pods: int
    units: int
    whole: int
    partial: int
    held_in_vain: int
    violations: int


def site_of(backend: Backend, machines: int = MACHINES) -> Scheduling:
    """Virtual clusters that share all machines in equal parts, and lend nothing."""
    names = tuple(f"{NAME}-{it:03}" for it in range(machines))
    supply = Supply(NAME, names, GPU, UNITS, 8000, 64 * 2**30)
    part = machines * UNITS // CLUSTERS
    clusters = tuple(
        VirtualCluster(name, (Share(NAME, part, part * supply.memory_bytes, 0, 0),), (), (name,), (name,))
        for name in (f"{NAME}-{number}" for number in range(CLUSTERS))
    )
    return Scheduling(backend, {NAME: supply}, clusters)


def nodes(scheduling: Scheduling) -> Iterator[Object]:
    """Machines without a kubelet."""
    for name in scheduling.skus:
        has = {GPU: str(UNITS), "cpu": "96", "memory": "768Gi", "pods": "110"}
        labels = {
            HOST_LABEL: name,
            SKU_LABEL: NAME,
            "pai-install/pinned": "",
            "volcano.sh/nodegroup-name": NAME,
            MARK: "",
        }
        status = {"capacity": has, "allocatable": has, "conditions": [{"type": "Ready", "status": "True"}]}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def gangs(scheduling: Scheduling, number: int = GANGS) -> Iterator[Object]:
    """Jobs that need all of their pods: of Volcano for Volcano, of Kubernetes otherwise."""
    names = [it.name for it in scheduling.clusters]
    for index in range(number):
        pods, units = _SIZES[(index // len(names)) % len(_SIZES)]
        yield gang(scheduling.backend, f"gang-{index}", names[index % len(names)], pods, units)


def gang(backend: Backend, name: str, cluster: str, pods: int, units: int) -> Object:
    """One job, in the namespace of its virtual cluster."""
    template = _template(backend, name, cluster, pods, units)
    metadata: Object = {"name": name, "namespace": cluster}
    if backend == "volcano":
        task = {"name": "train", "replicas": pods, "template": template}
        spec: Object = {"schedulerName": "volcano", "queue": cluster, "minAvailable": pods, "tasks": [task]}
        return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}
    if backend == "kueue":
        metadata["labels"] = {"kueue.x-k8s.io/queue-name": cluster}
    spec = {"parallelism": pods, "completions": pods, "backoffLimit": 1000, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _template(backend: Backend, name: str, cluster: str, pods: int, units: int) -> Object:
    """A pod. HiveD gives cells, all others devices of the node."""
    asked = {HIVED_MARKER: "1"} if backend == "hived" else {GPU: str(units)}
    # Volcano reckons what a gang needs by its requests
    resources = {"limits": asked, "requests": {"cpu": "1", "memory": "1Gi", **asked}}
    metadata: Object = {"labels": {GANG_LABEL: name, UNITS_LABEL: str(units)}}
    spec: Object = {
        "restartPolicy": "Never",
        "nodeSelector": {SKU_LABEL: NAME},
        "containers": [{"name": "train", "image": "none", "resources": resources}],
    }
    if backend == "hived":
        metadata["annotations"] = {HIVED_SPEC: _cells(name, cluster, pods, units)}
        spec |= {"schedulerName": f"{HIVED_SCHEDULER}{cluster}", "priorityClassName": "test"}
    return {"metadata": metadata, "spec": spec}


def _cells(name: str, cluster: str, pods: int, units: int) -> str:
    """What HiveD is asked for."""
    lines = [f"virtualCluster: {cluster}", "priority: 10", f"leafCellType: {NAME}", f"leafCellNumber: {units}"]
    lines += ["ignoreK8sSuggestedNodes: false", "affinityGroup:", f"  name: {cluster}.{name}", "  members:"]
    return "\n".join([*lines, f"  - podNumber: {pods}", f"    leafCellNumber: {units}"])


def size_of(job: Object) -> int:
    """Pods of a gang."""
    spec = job["spec"]
    return int(spec["minAvailable"] if "minAvailable" in spec else spec["parallelism"])


def judge(name: str, seconds: float, sizes: dict[str, int], pods: Iterable[Object], quota: int) -> Result:
    """What stands. sizes: pods of each gang. quota: GPUs of each namespace."""
    bound = [pod for pod in pods if pod["spec"].get("nodeName")]
    placed, used, held = Counter[str](), Counter[str](), Counter[str]()
    for pod in bound:
        labels = pod["metadata"]["labels"]
        name_of_it, units = labels[GANG_LABEL], int(labels[UNITS_LABEL])
        placed[name_of_it] += 1
        held[name_of_it] += units
        used[pod["metadata"]["namespace"]] += units
    partial = [it for it, count in placed.items() if count < sizes[it]]
    return Result(
        name=name,
        seconds=seconds,
        pods=len(bound),
        units=used.total(),
        whole=len(placed) - len(partial),
        partial=len(partial),
        held_in_vain=sum(held[it] for it in partial),
        violations=sum(units > quota for units in used.values()),
    )
