"""`make bench-scheduler`: 500 gangs on 200 machines of 8 GPUs, in a cluster that runs; no one's jobs may run there.

The machines are nodes that kwok plays beside the cluster's own: their pods are bound, and run nothing. 10 virtual
clusters ask for nearly three times what there is. No job ends, and all are there at once: what is measured is how long
it takes until nothing moves any more, and what stands then.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pai_install.report.table import table
from pai_install.schedulers.compile import objects_of
from pai_install.scheduling.model import Backend, Scheduling
from pai_install.site import load_site
from pai_install.site.schedulers import scheduler_of
from tests.e2e.conftest import Cluster
from tests.perf.fake_kubelets import fake_kubelets, kwok
from tests.perf.gangs import GANG_LABEL, GANGS, Result, gangs, judge, nodes, site_of, size_of
from tests.perf.hived_bench import divided
from tests.perf.made_objects import create, there_are
from tests.perf.process import this_machine

Object = dict[str, Any]

# what of the compiled objects counts; the site's own has the rest. In the whole cluster, and in namespaces
_WIDE = frozenset({"ResourceFlavor", "ClusterQueue", "Queue"})
_NARROW = frozenset({"LocalQueue", "ResourceQuota"})
ALONE = "kube-scheduler alone"
# nothing was bound for so long: it stands still. So long the first pod may take
STILL_S, FIRST_S = 60.0, 300.0
# users who submit at the same time
_AT_ONCE = 5
_HEAD = ("SCHEDULER", "SECONDS", "PODS", "GPUS", "WHOLE", "PARTIAL", "GPUS HELD IN VAIN", "OVER QUOTA")


def measure(cluster: Cluster, name: str, scheduling: Scheduling, number: int) -> Result:
    """One scheduler with so many gangs; nothing of it is left."""
    with quotas(cluster, scheduling, count=name != ALONE):
        jobs = list(gangs(scheduling, number))
        start = time.monotonic()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda part: create(cluster, jobs[part::_AT_ONCE]), range(_AT_ONCE)))
        seconds = _until_still(cluster, start)
        sizes = {job["metadata"]["name"]: size_of(job) for job in jobs}
        return judge(name, seconds, sizes, gang_pods(cluster), scheduling.clusters[0].shares[0].units)


@contextmanager
def quotas(cluster: Cluster, scheduling: Scheduling, *, count: bool) -> Iterator[None]:
    """The namespaces of the virtual clusters. count: with what these are compiled to.

    Namespaces go first, and all that is in them at once: a queue does not go while it has jobs.
    """
    names = [it.name for it in scheduling.clusters]
    spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": it}} for it in names]
    objects = objects_of(scheduling) if count else ()
    own = divided(cluster, scheduling) if count and scheduling.backend == "hived" else nullcontext()
    with own, there_are(cluster, [it for it in objects if it["kind"] in _WIDE]), there_are(cluster, spaces):
        create(cluster, [it for it in objects if it["kind"] in _NARROW])
        time.sleep(5)  # a quota counts a moment after it is made
        yield


def gang_pods(cluster: Cluster) -> list[Object]:
    """The pods of all gangs."""
    words = ("get", "pods", "--all-namespaces", f"--selector={GANG_LABEL}", "--output=json")
    found: list[Object] = json.loads(cluster.kubectl(*words))["items"]
    return found


def _until_still(cluster: Cluster, start: float) -> float:
    """Seconds until the last change of the number of bound pods."""
    count, since = 0, time.monotonic()
    words = ("get", "pods", "--all-namespaces", f"--selector={GANG_LABEL}", "--field-selector=spec.nodeName!=")
    while time.monotonic() - since < (STILL_S if count else FIRST_S):
        found = len(cluster.kubectl(*words, "--output=name").splitlines())
        if found != count:
            count, since = found, time.monotonic()
        time.sleep(1)
    return since - start


def rows(own: Backend | None, wanted: Sequence[str]) -> list[tuple[str, Backend]]:
    """What is measured, with the kind of its jobs. own: the site's scheduler. wanted: names; none: all."""
    there: list[tuple[str, Backend]] = [(ALONE, "default"), ("default", "default")]
    if own not in (None, "default"):
        there.append((own, own))
    return [row for row in there if not wanted or row[0] in wanted]


def main(words: list[str] | None = None) -> None:
    """Prints a row of the table as soon as it is there; at the end the same as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path, help="folder of a site whose cluster runs")
    parser.add_argument("--gangs", type=int, default=GANGS, help="fewer where the box is slow (%(default)s)")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help=f"rows, e.g. {ALONE!r} default kueue")
    asked = parser.parse_args(words)
    cluster = Cluster(asked.site, subprocess.CompletedProcess([], 0))
    own, results = scheduler_of(load_site(asked.site).site), []
    with tempfile.TemporaryDirectory(prefix="pai-bench-") as folder:
        made = there_are(cluster, list(nodes(site_of("default"))))
        with fake_kubelets(cluster, kwok(Path(folder)), Path(folder)), made:
            for name, backend in rows(own, asked.only):
                results.append(measure(cluster, name, site_of(backend), asked.gangs))
                print(json.dumps(asdict(results[-1])), flush=True)  # noqa: T201 - a program of its own
    told = [(it.name, f"{it.seconds:.0f}", *map(str, list(asdict(it).values())[2:])) for it in results]
    print(table([_HEAD, *told]))  # noqa: T201
    document = {"machine": this_machine(), "gangs": asked.gangs, "results": [asdict(it) for it in results]}
    print(json.dumps(document, indent=2))  # noqa: T201


if __name__ == "__main__":
    main()
