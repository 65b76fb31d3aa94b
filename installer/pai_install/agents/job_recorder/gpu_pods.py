"""Pods that hold NVIDIA devices. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pai_install.agents.common.utilization import Utilization, utilization_of
from pai_install.agents.common.values import Json, child, meta, rows, seconds, text
from pai_install.agents.job_recorder.objects import ENDED_PHASES, is_deleting

_RESOURCES = ("nvidia.com/", "hivedscheduler.microsoft.com/pod-scheduling-enable")


@dataclass(frozen=True)
class GpuPod:
    """holds: it requests NVIDIA devices. use: None where it is unknown. started: 0 before it runs."""

    job: tuple[str, ...]
    created: str
    holds: bool
    ended: bool
    runs: bool
    started: float
    use: Utilization | None


def gpu_pod(pod: Json, job: tuple[str, ...]) -> GpuPod:
    """The state of a pod of that job."""
    status = child(pod, "status")
    phase = text(status.get("phase"))
    return GpuPod(
        job,
        meta(pod, "creationTimestamp"),
        _holds_gpus(pod),
        phase in ENDED_PHASES,
        # A pod that is ending does nothing with its GPUs on purpose.
        phase == "Running" and not is_deleting(pod),
        seconds(text(status.get("startTime"))),
        utilization_of(pod),
    )


def _holds_gpus(pod: Json) -> bool:
    containers = rows(child(pod, "spec").get("containers"))
    return any(name.startswith(_RESOURCES) for row in containers for name in child(row, "resources", "limits"))
