"""Simulated NVIDIA GPUs for machines of a GPU SKU: their files, and their displayed state."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path

from pai_install.errors import ExitCode, PaiError
from pai_install.lab.file_entry import Entry
from pai_install.lab.gpu import (
    DRIVER,
    STAND_IN_DIR,
    StandInGpu,
    bus_list,
    cdi_file,
    driver_files,
    gpu_list,
    gpu_xml,
    gpus_of,
    metrics_table,
    nvlink_errors,
    nvlink_status,
    pci_files,
    peer_matrix,
    rows_table,
    smi_xml,
    use_table,
)
from pai_install.lab.names import machine_names
from pai_install.lab.spec import LabMachine, LabSpec
from pai_install.system.files import write_atomic

FOLDER = "var/lib/pai-stand-in"
_BIN = "usr/local/bin"
_UNITS = "etc/systemd/system"
# Programs that are not there, or whose answer would be the box's.
_PROGRAMS = ("nvidia-smi", "lspci", "modinfo", "journalctl")
_SHOWN = "shown"  # the file that names what is shown now
_USE = "use.csv"  # how much of the time each computes; no state of health
_LOST_PARTS = ("fb_memory_usage", "utilization", "ecc_errors", "remapped_rows", "temperature", "clocks")
_HANG_S = "86400"
_BOOT_UNIT = """[Unit]
Description=Show stand-ins for GPUs
DefaultDependencies=no
Before=sysinit.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/gpu-boot-stand-in
"""
_PLUGIN_UNIT = """[Unit]
Description=Stand-in for the NVIDIA device plugin

[Service]
ExecStart=/usr/bin/python3 /usr/local/sbin/device_plugin_stand_in.py /{folder}/list.txt
Restart=always
RestartSec=10
"""


class GpuState(StrEnum):
    """The displayed state of simulated GPUs."""

    HEALTHY = "healthy"
    GPU_LOST = "gpu-lost"
    XID_79 = "xid-79"
    DRIVER_HANG = "driver-hang"
    DRIVER_MISMATCH = "driver-mismatch"


def entries(machine: LabMachine) -> dict[str, Entry]:
    """Returns all entries that show a machine's GPUs as healthy, or {} without GPUs."""
    gpus = gpus_of(machine)
    if not gpus:
        return {}
    found = {f"{_BIN}/{name}-stand-in": _program(f"{name}-stand-in") for name in _PROGRAMS}
    found |= {f"{_BIN}/{name}": Entry(link=f"{name}-stand-in") for name in _PROGRAMS}
    for name in ("gpu-boot-stand-in", "device_plugin_stand_in.py"):
        found[f"usr/local/sbin/{name}"] = _program(name)
    found |= {
        f"{_UNITS}/gpu-boot-stand-in.service": Entry(_BOOT_UNIT),
        f"{_UNITS}/sysinit.target.wants/gpu-boot-stand-in.service": Entry(link="../gpu-boot-stand-in.service"),
        f"{_UNITS}/device-plugin-stand-in.service": Entry(_PLUGIN_UNIT.format(folder=FOLDER)),
        f"{_UNITS}/multi-user.target.wants/device-plugin-stand-in.service": Entry(
            link="../device-plugin-stand-in.service"
        ),
        f"usr/lib64/libnvidia-ml.so.{DRIVER}": Entry("a stand-in: there is no driver\n"),
        "etc/cdi/nvidia-stand-in.yaml": Entry(cdi_file(gpus, _CONTAINER_MOUNTS)),
    }
    return found | {f"{FOLDER}/{name}": Entry(text) for name, text in _static(gpus).items()} | _healthy(gpus)


_ON_DISK = "disk-version"
_CONTAINER_MOUNTS = {f"/{_BIN}/nvidia-smi-stand-in": "/usr/bin/nvidia-smi", f"/{FOLDER}": f"/{FOLDER}"}


def _program(name: str) -> Entry:
    return Entry((STAND_IN_DIR / name).read_text(), 0o755)


def _static(gpus: tuple[StandInGpu, ...]) -> dict[str, str]:
    nodes = [f"/dev/nvidia{gpu.index}" for gpu in gpus] + ["/dev/nvidiactl", "/dev/nvidia-uvm"]
    files = {
        "list.txt": gpu_list(gpus),
        _USE: use_table(gpus, [0] * len(gpus)),
        "metrics.csv": metrics_table(gpus),
        "rows.csv": rows_table(gpus),
        "nvlink.txt": nvlink_status(gpus),
        "nvlink-errors.txt": nvlink_errors(gpus),
        "p2p.txt": peer_matrix(gpus),
        "excluded.txt": "No excluded devices found.\n",
        "table.txt": "This is a stand-in for nvidia-smi in a lab machine. There is no GPU. It shows:\n"
        + gpu_list(gpus),
        "lspci.txt": bus_list(gpus),
        "driver-version": f"{DRIVER}\n",
        "nodes": "".join(f"{node}\n" for node in nodes),
    }
    files |= {f"pci/{path}": text for gpu in gpus for path, text in pci_files(gpu).items()}
    return files | {f"proc-driver/nvidia/{path}": text for path, text in driver_files(gpus).items()}


def _healthy(gpus: tuple[StandInGpu, ...]) -> dict[str, Entry]:
    texts = {**_SCENES[GpuState.HEALTHY](gpus), _SHOWN: GpuState.HEALTHY.value}
    return {f"{FOLDER}/{name}": Entry(text) for name, text in texts.items()}


def show(spec: LabSpec, machine: LabMachine, state: GpuState) -> str:
    """Changes the displayed state of a machine's GPUs and returns one line about it.

    Raises PaiError if the machine has no GPUs or does not exist.
    """
    gpus = gpus_of(machine)
    if not gpus:
        raise PaiError(
            f"cannot simulate GPUs on {machine.name}: its SKU has none",
            code="lab-machine-without-gpus",
            exit_code=ExitCode.USAGE,
        )
    folder = _folder(spec, machine)
    if not folder.is_dir():
        raise PaiError(
            f"cannot simulate GPUs on {machine.name}: it was created without them",
            code="lab-machine-without-stand-ins",
            remedy="run pai-install lab down, then lab up",
        )
    texts = {**_SCENES[state](gpus), _SHOWN: state.value}
    for name in _CHANGING - texts.keys():
        (folder / name).unlink(missing_ok=True)
    for name, text in texts.items():
        write_atomic(folder / name, text)
    return f"{machine.name} shows: {_MEANINGS[state].format(count=len(gpus), lost=_victim(gpus).bus_id)}"


def work(spec: LabSpec, machine: LabMachine, percent: Sequence[int]) -> str:
    """Sets the displayed utilization of a machine's GPUs and returns one line about it.

    percent: one per GPU. The last value also applies to all later GPUs. Raises PaiError as `show` does.
    """
    gpus, folder = gpus_of(machine), _folder(spec, machine)
    if not gpus:
        raise PaiError(
            f"cannot simulate GPUs on {machine.name}: its SKU has none",
            code="lab-machine-without-gpus",
            exit_code=ExitCode.USAGE,
        )
    if not folder.is_dir():
        raise PaiError(
            f"cannot simulate GPUs on {machine.name}: it was created without them",
            code="lab-machine-without-stand-ins",
            remedy="run pai-install lab down, then lab up",
        )
    each = [*percent, *[percent[-1]] * len(gpus)][: len(gpus)]
    write_atomic(folder / _USE, use_table(gpus, each))
    return f"{machine.name} shows: GPUs that compute {', '.join(f'{one} %' for one in each)} of the time"


def shown(spec: LabSpec, machine: LabMachine) -> GpuState:
    """Returns the displayed state of a machine's GPUs, healthy without GPUs."""
    path = _folder(spec, machine) / _SHOWN
    return GpuState(path.read_text().strip()) if machine.gpus and path.exists() else GpuState.HEALTHY


def _folder(spec: LabSpec, machine: LabMachine) -> Path:
    return machine_names(spec, machine).root / FOLDER


def _victim(gpus: tuple[StandInGpu, ...]) -> StandInGpu:
    return gpus[len(gpus) // 2]


def _all_well(gpus: tuple[StandInGpu, ...]) -> dict[str, str]:
    return {"answer.xml": smi_xml(gpu_xml(gpu) for gpu in gpus)}


def _lost(gpus: tuple[StandInGpu, ...]) -> dict[str, str]:
    victim = _victim(gpus)
    element = gpu_xml(victim)
    for part in _LOST_PARTS:
        element = re.sub(rf"<{part}>.*?</{part}>", f"<{part}>GPU is lost</{part}>", element, flags=re.DOTALL)
    return {"answer.xml": smi_xml(element if gpu is victim else gpu_xml(gpu) for gpu in gpus)}


def _xid_79(gpus: tuple[StandInGpu, ...]) -> dict[str, str]:
    now = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    slot = _victim(gpus).bus_id.partition(".")[0]
    fault = f"NVRM: Xid (PCI:{slot}): 79, pid='<unknown>', name=stand-in, GPU has fallen off the bus."
    return {**_all_well(gpus), "kernel.log": f"{now} stand-in kernel: {fault}\n"}


def _hang(gpus: tuple[StandInGpu, ...]) -> dict[str, str]:
    return {**_all_well(gpus), "sleep": _HANG_S}


def _mismatch(_gpus: tuple[StandInGpu, ...]) -> dict[str, str]:
    text = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.0 (stand-in)\n"
    # the upgrade has put another module on the disk, which a reboot loads
    return {"status": "18", "text": text, _ON_DISK: "580.999.99\n"}


_SCENES: dict[GpuState, Callable[[tuple[StandInGpu, ...]], dict[str, str]]] = {
    GpuState.HEALTHY: _all_well,
    GpuState.GPU_LOST: _lost,
    GpuState.XID_79: _xid_79,
    GpuState.DRIVER_HANG: _hang,
    GpuState.DRIVER_MISMATCH: _mismatch,
}
_MEANINGS = {
    GpuState.HEALTHY: "{count} healthy GPUs",
    GpuState.GPU_LOST: "nvidia-smi cannot reach {lost}",
    GpuState.XID_79: "Xid 79 of {lost} in the kernel log",
    GpuState.DRIVER_HANG: "nvidia-smi never answers",
    GpuState.DRIVER_MISMATCH: "nvidia-smi says that driver and library are of different versions",
}
_CHANGING = {"answer.xml", "kernel.log", "sleep", "status", "text", _ON_DISK}
