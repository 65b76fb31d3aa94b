"""`make bench-scheduler`: 200 machines of 8 GPUs, 500 gangs of 10 virtual clusters that ask for twice as much.

No job ends, and all are there at once: what is measured is how long it takes until nothing moves any more, and what
stands then: gangs that are whole, gangs of which a part holds GPUs for nothing, and virtual clusters beyond their quota.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pai_install.report.storages import table
from pai_install.scheduling.compile import objects_of
from pai_install.scheduling.model import HOST_LABEL, SKU_LABEL, Backend, Scheduling, Share, Supply, VirtualCluster
from tests.perf.fake_cluster import FakeCluster, fake_cluster, kwok
from tests.perf.process import ROOT, this_machine

MACHINES, UNITS, GANGS, CLUSTERS = 200, 8, 500, 10
GPU = "nvidia.com/gpu"
# pods of a gang, GPUs of a pod; in turn
SIZES = ((1, 8), (2, 8), (4, 4), (8, 1), (4, 2), (2, 4), (1, 1), (1, 2), (2, 8), (1, 4))
# nothing was bound for so long: it stands still
STILL_S = 20.0
_GANG = "pai-bench/gang"


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
    """Virtual clusters that share all machines in equal parts."""
    supply = Supply("a100", tuple(f"gpu-{it:03}" for it in range(machines)), GPU, UNITS, 8000, 64 * 2**30)
    part = machines * UNITS // CLUSTERS
    clusters = tuple(
        VirtualCluster(name, (Share("a100", part, part * supply.memory_bytes, part, None),), (), (name,), (name,))
        for name in (f"team-{number}" for number in range(CLUSTERS))
    )
    return Scheduling(backend, {"a100": supply}, clusters)


def nodes(scheduling: Scheduling) -> Iterator[dict[str, Any]]:
    """Machines without a kubelet."""
    for name in scheduling.skus:
        has = {GPU: str(UNITS), "cpu": "96", "memory": "768Gi", "pods": "110"}
        labels = {HOST_LABEL: name, SKU_LABEL: "a100"}
        status = {"capacity": has, "allocatable": has, "conditions": [{"type": "Ready", "status": "True"}]}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def gangs(scheduling: Scheduling, number: int = GANGS) -> Iterator[dict[str, Any]]:
    """batch Jobs that need all of their pods."""
    names = [it.name for it in scheduling.clusters]
    for index in range(number):
        pods, units = SIZES[(index // len(names)) % len(SIZES)]
        resources = {"limits": {GPU: str(units)}, "requests": {"cpu": "1", "memory": "1Gi"}}
        template = {
            "metadata": {"labels": {_GANG: f"gang-{index}"}},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "train", "image": "none", "resources": resources}],
            },
        }
        yield {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": f"gang-{index}", "namespace": names[index % len(names)]},
            "spec": {"parallelism": pods, "completions": pods, "backoffLimit": 1000, "template": template},
        }


def judge(
    name: str, seconds: float, jobs: Iterable[dict[str, Any]], pods: Iterable[dict[str, Any]], quota: int
) -> Result:
    """What stands. quota: GPUs of each namespace."""
    bound = [pod for pod in pods if pod["spec"].get("nodeName")]
    placed, used, held = Counter[str](), Counter[str](), Counter[str]()
    for pod in bound:
        units = int(pod["spec"]["containers"][0]["resources"]["limits"][GPU])
        gang = pod["metadata"]["labels"][_GANG]
        placed[gang] += 1
        held[gang] += units
        used[pod["metadata"]["namespace"]] += units
    sizes = {job["metadata"]["name"]: job["spec"]["parallelism"] for job in jobs}
    partial = [gang for gang, count in placed.items() if count < sizes[gang]]
    whole = sum(count == sizes[gang] for gang, count in placed.items())
    over = sum(units > quota for units in used.values())
    return Result(name, seconds, len(bound), whole, len(partial), sum(held[it] for it in partial), over)


def measure(
    name: str, site: Path, fake_kubelets: Path, objects: Sequence[dict[str, Any]], scheduling: Scheduling
) -> Result:
    """One scheduler, with a control plane of its own. objects: what its virtual clusters are compiled to."""
    with tempfile.TemporaryDirectory(prefix="pai-bench-") as folder:
        with fake_cluster(site, Path(folder), fake_kubelets) as cluster:
            spaces = [
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": it.name}} for it in scheduling.clusters
            ]
            cluster.ask("create", "--filename=-", objects=[*spaces, *nodes(scheduling)])
            if objects:
                cluster.ask("create", "--filename=-", objects=objects)
                time.sleep(5)  # a quota counts a moment after it is made
            jobs = list(gangs(scheduling))
            start = time.monotonic()
            cluster.ask("create", "--filename=-", objects=jobs)
            seconds = _until_still(cluster, start)
            return judge(name, seconds, jobs, cluster.items("pods"), scheduling.clusters[0].shares[0].units)


def _until_still(cluster: FakeCluster, start: float) -> float:
    """Seconds until the last change of the number of bound pods."""
    count, since = -1, time.monotonic()
    while time.monotonic() - since < STILL_S:
        words = ("get", "pods", "--all-namespaces", "--field-selector=spec.nodeName!=", "--output=name")
        found = len(cluster.ask(*words).splitlines())
        if found != count:
            count, since = found, time.monotonic()
        time.sleep(1)
    return since - start


def main(site: Path) -> None:
    """Prints a table, then the same as JSON."""
    with tempfile.TemporaryDirectory(prefix="pai-bench-kwok-") as folder:
        fake_kubelets = kwok(Path(folder))
        plain = site_of("default")
        ours = [it for it in objects_of(plain) if it["kind"] in {"ResourceQuota", "PriorityClass"}]
        results = [
            measure("kube-scheduler alone", site, fake_kubelets, (), plain),
            measure("default", site, fake_kubelets, ours, plain),
        ]
    head = ("SCHEDULER", "SECONDS", "PODS", "WHOLE", "PARTIAL", "GPUS HELD IN VAIN", "OVER QUOTA")
    rows = [(it.name, f"{it.seconds:.0f}", *map(str, list(asdict(it).values())[2:])) for it in results]
    print(table([head, *rows]))  # noqa: T201 - a program of its own
    print(json.dumps({"machine": this_machine(), "results": [asdict(it) for it in results]}, indent=2))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "layouts" / "lab")
