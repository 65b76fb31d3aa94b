"""`make bench-scheduler`: 500 gangs on 200 machines of 8 GPUs, in a cluster that runs; no one's jobs may run there.

The machines are nodes that kwok plays beside the cluster's own: their pods are bound, and run nothing. 10 virtual
clusters ask for nearly three times what there is. No job ends, and all are there at once: what is measured is how long
it takes until nothing moves any more, and what stands then.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pai_install.report.storages import table
from pai_install.scheduling.compile import objects_of
from pai_install.scheduling.model import HOST_LABEL, SKU_LABEL, Backend, Scheduling, Share, Supply, VirtualCluster
from pai_install.site import load_site
from pai_install.site.schedulers import scheduler_of
from tests.e2e.conftest import Cluster
from tests.perf.fake_kubelets import MARK, fake_kubelets, kwok
from tests.perf.process import this_machine

Object = dict[str, Any]

MACHINES, UNITS, GANGS, CLUSTERS = 200, 8, 500, 10
GPU = "nvidia.com/gpu"
NAME = "pai-bench"
# pods of a gang, GPUs of a pod; in turn
SIZES = ((1, 8), (2, 8), (4, 4), (8, 1), (4, 2), (2, 4), (1, 1), (1, 2), (2, 8), (1, 4))
# what of the compiled objects counts; the site's own has the rest
_COUNTS = frozenset({"ResourceFlavor", "ClusterQueue", "LocalQueue", "Queue", "ResourceQuota"})
# nothing was bound for so long: it stands still
STILL_S = 30.0
_GANG = "pai-bench/gang"
# users who submit at the same time
_AT_ONCE = 5


@dataclass(frozen=True, slots=True)
class Result:
    """seconds: until the last pod was bound. partial: gangs of which some pods have GPUs and some have none."""

    name: str
    seconds: float
    pods: int
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
        pods, units = SIZES[(index // len(names)) % len(SIZES)]
        yield gang(scheduling.backend, f"gang-{index}", names[index % len(names)], pods, units)


def gang(backend: Backend, name: str, cluster: str, pods: int, units: int) -> Object:
    """One job, in the namespace of its virtual cluster."""
    resources = {"limits": {GPU: str(units)}, "requests": {"cpu": "1", "memory": "1Gi"}}
    pod = {
        "restartPolicy": "Never",
        "nodeSelector": {SKU_LABEL: NAME},
        "containers": [{"name": "train", "image": "none", "resources": resources}],
    }
    template = {"metadata": {"labels": {_GANG: name}}, "spec": pod}
    metadata: Object = {"name": name, "namespace": cluster}
    if backend == "volcano":
        task = {"name": "train", "replicas": pods, "template": template}
        spec: Object = {"schedulerName": "volcano", "queue": cluster, "minAvailable": pods, "tasks": [task]}
        return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}
    if backend == "kueue":
        metadata["labels"] = {"kueue.x-k8s.io/queue-name": cluster}
    spec = {"parallelism": pods, "completions": pods, "backoffLimit": 1000, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def judge(name: str, seconds: float, sizes: dict[str, int], pods: Iterable[Object], quota: int) -> Result:
    """What stands. sizes: pods of each gang. quota: GPUs of each namespace."""
    bound = [pod for pod in pods if pod["spec"].get("nodeName")]
    placed, used, held = Counter[str](), Counter[str](), Counter[str]()
    for pod in bound:
        units = int(pod["spec"]["containers"][0]["resources"]["limits"][GPU])
        gang = pod["metadata"]["labels"][_GANG]
        placed[gang] += 1
        held[gang] += units
        used[pod["metadata"]["namespace"]] += units
    partial = [gang for gang, count in placed.items() if count < sizes[gang]]
    whole = sum(count == sizes[gang] for gang, count in placed.items())
    over = sum(units > quota for units in used.values())
    return Result(name, seconds, len(bound), whole, len(partial), sum(held[it] for it in partial), over)


def size_of(job: Object) -> int:
    """Pods of a gang."""
    spec = job["spec"]
    return int(spec["minAvailable"] if "minAvailable" in spec else spec["parallelism"])


def create(cluster: Cluster, objects: Sequence[Object]) -> None:
    """In one call of kubectl."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"apiVersion": "v1", "kind": "List", "items": list(objects)}, file)
        file.flush()
        cluster.kubectl("create", f"--filename={file.name}")


def measure(cluster: Cluster, name: str, scheduling: Scheduling, *, quotas: bool) -> Result:
    """One scheduler. quotas: with what its virtual clusters are compiled to; nothing of it is left."""
    names = [it.name for it in scheduling.clusters]
    spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": it}} for it in names]
    objects = [it for it in objects_of(scheduling) if quotas and it["kind"] in _COUNTS]
    with there_are(cluster, spaces), there_are(cluster, objects):
        time.sleep(5)  # a quota counts a moment after it is made
        jobs = list(gangs(scheduling))
        start = time.monotonic()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda number: create(cluster, jobs[number::_AT_ONCE]), range(_AT_ONCE)))
        seconds = _until_still(cluster, start)
        sizes = {job["metadata"]["name"]: size_of(job) for job in jobs}
        try:
            return judge(name, seconds, sizes, gang_pods(cluster), scheduling.clusters[0].shares[0].units)
        finally:
            for kind in {f"{job['kind']}.{job['apiVersion'].partition('/')[0]}" for job in jobs}:
                for space in names:
                    words = (f"--namespace={space}", "--all", "--wait=false")
                    cluster.kubectl("delete", kind, *words)
            _until(lambda: not gang_pods(cluster))


@contextmanager
def there_are(cluster: Cluster, objects: Sequence[Object]) -> Iterator[None]:
    """They are made, and gone afterwards."""
    if not objects:
        yield
        return
    create(cluster, objects)
    try:
        yield
    finally:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"apiVersion": "v1", "kind": "List", "items": list(objects)}, file)
            file.flush()
            cluster.kubectl("delete", "--ignore-not-found", f"--filename={file.name}")


def gang_pods(cluster: Cluster) -> list[Object]:
    """The pods of all gangs."""
    words = ("get", "pods", "--all-namespaces", f"--selector={_GANG}", "--output=json")
    found: list[Object] = json.loads(cluster.kubectl(*words))["items"]
    return found


def _until_still(cluster: Cluster, start: float) -> float:
    """Seconds until the last change of the number of bound pods."""
    count, since = -1, time.monotonic()
    words = ("get", "pods", "--all-namespaces", f"--selector={_GANG}", "--field-selector=spec.nodeName!=")
    while time.monotonic() - since < STILL_S:
        found = len(cluster.kubectl(*words, "--output=name").splitlines())
        if found != count:
            count, since = found, time.monotonic()
        time.sleep(1)
    return since - start


def _until(is_so: Any, seconds: float = 600) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError("what the bench made is still there")
        time.sleep(2)


def main(site: Path) -> None:
    """Prints a table, then the same as JSON."""
    scheduler = scheduler_of(load_site(site).site)
    cluster = Cluster(site, subprocess.CompletedProcess([], 0))
    plain = site_of("default")
    with (
        tempfile.TemporaryDirectory(prefix="pai-bench-") as folder,
        fake_kubelets(cluster, kwok(Path(folder)), Path(folder)),
        there_are(cluster, list(nodes(plain))),
    ):
        results = [
            measure(cluster, "kube-scheduler alone", plain, quotas=False),
            measure(cluster, "default", plain, quotas=True),
        ]
        if scheduler in ("kueue", "volcano"):
            results.append(measure(cluster, scheduler, site_of(scheduler), quotas=True))
    head = ("SCHEDULER", "SECONDS", "PODS", "WHOLE", "PARTIAL", "GPUS HELD IN VAIN", "OVER QUOTA")
    rows = [(it.name, f"{it.seconds:.0f}", *map(str, list(asdict(it).values())[2:])) for it in results]
    print(table([head, *rows]))  # noqa: T201 - a program of its own
    print(json.dumps({"machine": this_machine(), "results": [asdict(it) for it in results]}, indent=2))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
