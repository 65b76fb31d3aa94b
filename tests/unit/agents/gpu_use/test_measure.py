"""Samples of a minute -> how busy a pod was."""

from __future__ import annotations

import pytest

from pai_install.agents.common.utilization import Work
from pai_install.agents.gpu_use.measure import SAMPLES, Minute, held, level, sample, work
from pai_install.agents.gpu_use.smi import Gpu

POD = ("vision", "train-0")
OTHER = ("vision", "train-1")
GPUS = {"GPU-1": Gpu("0", 10.0), "GPU-2": Gpu("1", 50.0), "GPU-3": Gpu("2", None)}


def busy(devices: list[str], times: int = SAMPLES) -> float | None:
    minute: Minute = {}
    for _ in range(times):
        sample(minute, GPUS, {POD: devices})
    return level(minute[POD])


@pytest.mark.parametrize(
    ("devices", "percent"),
    [
        (["GPU-1"], 10.0),
        (["GPU-1", "GPU-2"], 50.0),  # the busiest counts
        (["GPU-2::3"], 50.0),  # shared by turns
        (["1"], 50.0),  # by its number, as HiveD gives it
        (["GPU-1", "GPU-3"], None),  # the driver does not say
        (["GPU-1", "MIG-7"], None),
        (["GPU-9"], None),  # it fell off the bus
    ],
)
def test_a_pod_is_as_busy_as_its_busiest_gpu(devices: list[str], percent: float | None) -> None:
    assert busy(devices) == percent


def test_a_minute_of_which_too_little_is_known_is_not_known() -> None:
    assert busy(["GPU-1"], SAMPLES - 1) == 10.0
    assert busy(["GPU-1"], SAMPLES - 2) is None


def test_it_is_the_mean_of_the_minute_and_each_pod_has_its_own() -> None:
    minute: Minute = {}
    for percent in (0.0, 100.0, 0.0, 0.0):
        sample(minute, {"GPU-1": Gpu("0", percent), "GPU-2": Gpu("1", 7.0)}, {POD: ["GPU-1"], OTHER: ["GPU-2"]})
    assert (level(minute[POD]), level(minute[OTHER])) == (25.0, 7.0)


def test_devices_of_others_are_none_of_ours() -> None:
    found = {"nvidia.com/gpu": ["GPU-1"], "nvidia.com/mig-1g.10gb": ["MIG-1"], "example.com/nic": ["eth1"]}
    assert held(found) == ["GPU-1", "MIG-1"]
    assert held({}) == []


@pytest.mark.parametrize(
    ("devices", "busy_ms", "measured_ms"),
    [
        (["GPU-1"], 6000, 60_000),
        (["GPU-1", "GPU-2"], 36_000, 120_000),
        (["GPU-1", "GPU-3"], 6000, 60_000),
        (["GPU-9"], 0, 0),
    ],
)
def test_work_is_of_all_gpus_and_an_unknown_one_counts_neither_as_busy_nor_as_idle(
    devices: list[str], busy_ms: int, measured_ms: int
) -> None:
    minute: Minute = {}
    for _ in range(SAMPLES):
        sample(minute, GPUS, {POD: devices})
    assert work(minute[POD]) == Work(busy_ms, measured_ms)
