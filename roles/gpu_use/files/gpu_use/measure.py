"""Samples of a minute -> how busy each pod was in it. Pure.

A pod is as busy as the busiest of its GPUs. Where a sample of one is missing more than once, no one knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Optional

from gpu_use.holders import Pod
from gpu_use.smi import Gpu
from gpu_use.steps import highest

# samples that a minute has, and that it needs
SAMPLES, ENOUGH = 4, 3
_OURS = "nvidia.com/"
# after the ID of a GPU that several pods share by turns: which turn
_TURN = "::"

Minute = dict[Pod, dict[str, list[Optional[float]]]]


def held(devices: Mapping[str, Iterable[str]]) -> list[str]:
    """The NVIDIA devices among what the kubelet gave a pod."""
    return [one for resource, ids in sorted(devices.items()) if resource.startswith(_OURS) for one in ids]


def sample(minute: Minute, gpus: Mapping[str, Gpu], pods: Mapping[Pod, Iterable[str]]) -> None:
    """Adds a sample of each device that a pod holds."""
    numbers = {gpu.index: gpu for gpu in gpus.values()}
    for pod, devices in pods.items():
        rows = minute.setdefault(pod, {})
        for device in devices:
            own = device.partition(_TURN)[0]
            found = gpus.get(own) or numbers.get(own)
            rows.setdefault(device, []).append(found.busy if found is not None else None)


def level(rows: Mapping[str, list[Optional[float]]]) -> Optional[float]:
    """How busy a pod was, in percent; None where that is not known."""
    return highest([_mean(samples) for samples in rows.values()])


def _mean(samples: list[Optional[float]]) -> Optional[float]:
    known = [one for one in samples if one is not None]
    return sum(known) / len(known) if len(known) >= ENOUGH else None
