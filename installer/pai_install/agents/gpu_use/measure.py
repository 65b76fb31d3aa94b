"""Utilization of each pod in one minute, from samples. Pure.

The utilization of a pod is that of its busiest GPU. It is unknown where more than one sample of a GPU is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Optional

from pai_install.agents.common.utilization import MINUTE_S, Work
from pai_install.agents.gpu_use.gpu_processes import Pod
from pai_install.agents.gpu_use.smi import Gpu

# samples that a minute has, and that it needs
SAMPLES, ENOUGH = 4, 3
_OURS = "nvidia.com/"
# after the ID of a GPU that several pods share by turns: which turn
_TURN = "::"

Minute = dict[Pod, dict[str, list[Optional[float]]]]


def held(devices: Mapping[str, Iterable[str]]) -> list[str]:
    """Returns the NVIDIA devices among all devices of a pod."""
    return [one for resource, ids in sorted(devices.items()) if resource.startswith(_OURS) for one in ids]


def sample(minute: Minute, gpus: Mapping[str, Gpu], pods: Mapping[Pod, Iterable[str]]) -> None:
    """Adds a sample of each device that a pod holds."""
    numbers = {gpu.index: gpu for gpu in gpus.values()}
    for pod, devices in pods.items():
        rows = minute.setdefault(pod, {})
        for device in devices:
            own = device.partition(_TURN)[0]
            # The kubelet names a GPU by its UUID, and HiveD by its index.
            found = gpus.get(own) or numbers.get(own)
            rows.setdefault(device, []).append(found.busy if found is not None else None)


def holders(gpus: Mapping[str, Gpu], pods: Mapping[Pod, Iterable[str]]) -> dict[str, list[Pod]]:
    """Returns UUID -> pods that hold the GPU or a turn of it."""
    uuids = {gpu.index: uuid for uuid, gpu in gpus.items()}
    found: dict[str, list[Pod]] = {}
    for pod, devices in pods.items():
        for device in devices:
            own = device.partition(_TURN)[0]
            found.setdefault(uuids.get(own, own), []).append(pod)
    return found


def level(rows: Mapping[str, list[float | None]]) -> float | None:
    """Returns the utilization of a pod in percent, or None for unknown."""
    means = [_mean(samples) for samples in rows.values()]
    known = [mean for mean in means if mean is not None]
    return max(known) if known and len(known) == len(means) else None


def work(rows: Mapping[str, list[float | None]]) -> Work:
    """Returns the work of one minute. A GPU without a mean is neither busy nor idle."""
    known = [mean for mean in map(_mean, rows.values()) if mean is not None]
    return Work(round(sum(known) * MINUTE_S * 10), len(known) * MINUTE_S * 1000)


def _mean(samples: list[float | None]) -> float | None:
    known = [one for one in samples if one is not None]
    return sum(known) / len(known) if len(known) >= ENOUGH else None
