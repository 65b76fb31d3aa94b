"""Metrics of GPUs as a text file of the node exporter, under the names of DCGM where the meaning is the same. Pure.

A value that the driver does not give has no sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pai_install.agents.gpu_use.gpu_processes import Pod
from pai_install.agents.gpu_use.smi import Gpu
from pai_install.agents.gpu_use.xids import Xids

# field of nvidia-smi -> metric, and its help
_NAMES: Mapping[str, tuple[str, str]] = {
    "memory.used": ("DCGM_FI_DEV_FB_USED", "Used memory in MiB."),
    "memory.free": ("DCGM_FI_DEV_FB_FREE", "Free memory in MiB."),
    "memory.total": ("DCGM_FI_DEV_FB_TOTAL", "Memory in MiB."),
    "temperature.gpu": ("DCGM_FI_DEV_GPU_TEMP", "Temperature in degrees Celsius."),
    "temperature.memory": ("DCGM_FI_DEV_MEMORY_TEMP", "Temperature of the memory in degrees Celsius."),
    "power.draw": ("DCGM_FI_DEV_POWER_USAGE", "Power in watts."),
    "clocks.current.sm": ("DCGM_FI_DEV_SM_CLOCK", "Clock of the processors in MHz."),
    "clocks.current.memory": ("DCGM_FI_DEV_MEM_CLOCK", "Clock of the memory in MHz."),
    "pstate": ("DCGM_FI_DEV_PSTATE", "Performance state, 0 is the fastest."),
    "clocks_throttle_reasons.active": ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "Bits of the reasons of a slowdown."),
    "ecc.errors.corrected.volatile.total": ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "Corrected memory errors."),
    "ecc.errors.uncorrected.volatile.total": ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "Uncorrected memory errors."),
    "pcie.link.gen.current": ("DCGM_FI_DEV_PCIE_LINK_GEN", "Generation of the PCIe link."),
    "pcie.link.width.current": ("DCGM_FI_DEV_PCIE_LINK_WIDTH", "Lanes of the PCIe link."),
    "pcie.link.width.max": ("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", "Lanes that the PCIe link can have."),
}
_BUSY = ("DCGM_FI_DEV_GPU_UTIL", "Utilization in percent.")
_ROWS: Mapping[str, tuple[str, str]] = {
    "correctable": ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "Rows remapped for corrected errors."),
    "uncorrectable": ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "Rows remapped for uncorrected errors."),
    "failure": ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "Whether a row could not be remapped."),
    "pending": ("pai_gpu_row_remap_pending", "Whether a row is remapped at the next reset."),
}
_REASONS = {"hw_slowdown": 0x8, "hw_thermal": 0x40, "hw_power_brake": 0x80, "sw_thermal": 0x20, "sw_power_cap": 0x4}
_SLOWDOWN = ("pai_gpu_slowdown", "Whether a reason slows the GPU down.")
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True)
class Reading:
    """What one sample shows. gpus: by UUID, empty without an answer of the driver. holders: UUID -> pods.

    remapped: UUID -> rows. xids: None without a journal. hanging_s: since when the driver hangs. expected: GPUs of the
    layout. at: seconds since 1970.
    """

    at: float
    gpus: Mapping[str, Gpu]
    holders: Mapping[str, Iterable[Pod]] = field(default_factory=dict)
    remapped: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    xids: Xids | None = None
    hanging_s: float = 0.0
    expected: int = 0


def write(path: Path, text: str) -> None:
    """Replaces the file in one step."""
    part = path.with_suffix(".part")
    part.write_text(text)
    part.chmod(0o644)
    part.replace(path)


def exposition(reading: Reading) -> str:
    """The text file."""
    families: dict[str, tuple[str, list[str]]] = {}
    for name, text, labels, value in _samples(reading):
        shown = ",".join(f'{label}="{content.translate(_ESCAPES)}"' for label, content in labels.items())
        families.setdefault(name, (text, []))[1].append(
            f"{name}{{{shown}}} {value:.15g}" if shown else f"{name} {value:.15g}"
        )
    lines = []
    for name, (text, samples) in families.items():
        lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge", *samples]
    return "".join(f"{line}\n" for line in lines)


_Sample = tuple[str, str, Mapping[str, str], float]


def _samples(reading: Reading) -> Iterator[_Sample]:
    if reading.expected:
        yield "pai_gpu_expected", "GPUs in the layout.", {}, reading.expected
    yield "pai_nvidia_smi_running_seconds", "Time of a request that has not returned.", {}, reading.hanging_s
    if reading.gpus:
        yield "pai_gpu_count", "GPUs that the driver shows.", {}, len(reading.gpus)
        yield "pai_gpu_measured_timestamp_seconds", "Time of the last answer of the driver.", {}, reading.at
    for uuid, gpu in reading.gpus.items():
        labels = {"gpu": gpu.index, "UUID": uuid, **_holder(reading.holders.get(uuid, ()))}
        yield from _of_gpu(gpu, labels, reading.remapped.get(uuid, {}))
    if reading.xids is not None:
        numbers = {gpu.bus: gpu.index for gpu in reading.gpus.values() if gpu.bus}
        for (bus, xid), at in sorted(reading.xids.items()):
            where = {"gpu": numbers.get(bus, ""), "pci_bus_id": bus, "xid": xid}
            yield "pai_gpu_xid_timestamp_seconds", "Time of the last Xid of this boot.", where, at


def _of_gpu(gpu: Gpu, labels: Mapping[str, str], rows: Mapping[str, float]) -> Iterator[_Sample]:
    if gpu.busy is not None:
        yield (*_BUSY, labels, gpu.busy)
    for source, names in ((gpu.values, _NAMES), (rows, _ROWS)):
        for name, (metric, text) in names.items():
            if name in source:
                yield metric, text, labels, source[name]
    bits = gpu.values.get("clocks_throttle_reasons.active")
    if bits is not None:
        for reason, bit in _REASONS.items():
            yield (*_SLOWDOWN, {**labels, "reason": reason}, float(bool(int(bits) & bit)))


def _holder(pods: Iterable[Pod]) -> Mapping[str, str]:
    """Returns the pod that holds the GPU, or {} if none or several do."""
    found = sorted(set(pods))
    return {"namespace": found[0][0], "pod": found[0][1]} if len(found) == 1 else {}
