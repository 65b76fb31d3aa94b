"""A job on each GPU machine that measures the bandwidth between all its GPUs: all_reduce of nccl-tests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pai_install.cluster.client import ClusterClient, Select
from pai_install.errors import PaiError
from pai_install.health.act.pod import NAMESPACE, labels_of, results, spec_on
from pai_install.kube.model import Pod

SELECTOR = "app=pai-health-bandwidth"
LIMIT_S = 600
# Where images keep nccl-tests that is not on their PATH.
_PLACES = "/opt/nccl-tests/build:/opt/nccl_tests/build:/nccl-tests/build:/workspace/nccl-tests/build:/usr/local/bin"
_SCRIPT = f'PATH="$PATH:{_PLACES}" exec all_reduce_perf "$@"'
_TOTAL = re.compile(r"<fb_memory_usage>\s*<total>(\d+) MiB")
_GIB = (16, 8, 4, 2, 1)
_JOBS = Select(("jobs.batch",), NAMESPACE, SELECTOR)
_PODS = Select(("pods",), NAMESPACE, SELECTOR)
_REMOVAL_S = 120


@dataclass(frozen=True, slots=True)
class BandwidthRun:
    """One machine's run. count: all its GPUs. message_gib: how much is reduced at a time."""

    device: str
    count: int
    message_gib: int


def plan_run(device: str, smi_xml: str) -> BandwidthRun | None:
    """Returns the run for a machine from its `nvidia-smi -q -x`, or None if it lists no GPU with its memory.

    The message takes at most a quarter of the smallest GPU's memory: input, output, and expected result must fit.
    """
    totals = [int(total) for total in _TOTAL.findall(smi_xml)]
    if not totals or len(totals) != smi_xml.count("<gpu id="):
        return None
    size = next((size for size in _GIB if size * 1024 * 4 <= min(totals)), _GIB[-1])
    return BandwidthRun(device, len(totals), size)


def measure(cluster: ClusterClient, runs: Mapping[str, BandwidthRun], image: str) -> dict[str, dict[str, Any]]:
    """Returns machine -> result of all_reduce_perf of `image`, in the form of the collector's commands.

    rc 0: its output. rc 1: the cause of the failure. timed_out: it did not end or start in time, for instance because a
    GPU is in use. All machines run in parallel. Raises PaiError if the cluster is unreachable. The jobs are always
    deleted. If this program is killed, the cluster ends and deletes them.
    """
    cluster.delete_selected(_JOBS, wait_s=_REMOVAL_S)
    try:
        cluster.create([_job(machine, run, image) for machine, run in sorted(runs.items())])
        cluster.wait(_JOBS, "jsonpath={.status.conditions}", LIMIT_S)
        (pods,) = cluster.list(_PODS)
        logs = cluster.logs_of(_PODS, tail=400)
    except BaseException:
        with suppress(PaiError):
            cluster.delete_selected(_JOBS)
        raise
    cluster.delete_selected(_JOBS, wait_s=_REMOVAL_S)
    return results(sorted(runs), tuple(map(Pod.parse, pods)), logs)


def not_run(why: str) -> dict[str, Any]:
    """The evidence of a machine where it was asked for and could not be tried."""
    return {"rc": None, "not_started": True, "stdout": "", "stderr": why}


def _job(machine: str, run: BandwidthRun, image: str) -> dict[str, Any]:
    size = f"{run.message_gib}G"
    words = ["-b", size, "-e", size, "-g", str(run.count), "-w", "5", "-n", "20", "-c", "1"]
    container = {
        "name": "all-reduce",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", _SCRIPT, "all_reduce_perf", *words],
        "env": [{"name": "NCCL_DEBUG", "value": "WARN"}],
        "resources": {"limits": {run.device: str(run.count)}},
        # NCCL's processes and threads share memory there; the runtime's 64 MiB are not enough
        "volumeMounts": [{"name": "shared-memory", "mountPath": "/dev/shm"}],  # noqa: S108 - the container's
    }
    volumes = [{"name": "shared-memory", "emptyDir": {"medium": "Memory"}}]
    pod = {**spec_on(machine, container), "volumes": volumes}
    labels = labels_of(SELECTOR, machine)
    spec = {
        "backoffLimit": 0,
        "activeDeadlineSeconds": LIMIT_S,
        "ttlSecondsAfterFinished": LIMIT_S,
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    name = f"pai-health-bandwidth-{machine}"[:63].rstrip("-.")
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
