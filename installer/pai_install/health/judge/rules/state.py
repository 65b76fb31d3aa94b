"""What a GPU says of itself: lost, unreadable, needs an action, and how it is set up."""

from __future__ import annotations

from pai_install.health.evidence import fields
from pai_install.health.evidence.reading import State
from pai_install.health.judge.check import GpuCheck, MachineCheck
from pai_install.health.judge.gpu_view import GpuView
from pai_install.health.judge.view import MachineView
from pai_install.health.model import (
    Action,
    CheckText,
    Judgement,
    NotObservedError,
    failed,
    passed,
    skipped,
    unknown,
    warned,
)

# NVIDIA's own verdict, by the words of several driver generations (lower case).
_RECOVERY = {
    "gpu reset": Action.RESET_GPU,
    "reset": Action.RESET_GPU,
    "bus reset": Action.RESET_GPU,
    "drain and reset": Action.RESET_GPU,
    "node reboot": Action.REBOOT,
    "reboot": Action.REBOOT,
    "system reboot": Action.REBOOT,
    "recover imex domain": Action.DRAIN,
}


def _lost(gpu: GpuView, _machine: MachineView) -> Judgement:
    gpu.reading(fields.UUID)
    errors = gpu.errors
    lost = [path for path, text in errors.items() if "is lost" in text.lower()]
    if lost:
        return failed(
            "the GPU is lost: the driver cannot reach it any more", f"GPU is lost ({len(lost)} fields)", "reachable"
        )
    reset = [path for path, text in errors.items() if "requires reset" in text.lower()]
    if reset:
        return failed(
            "the GPU must be reset", f"GPU requires reset ({len(reset)} fields)", "usable", action=Action.RESET_GPU
        )
    return passed("reachable", "reachable")


def _readable(gpu: GpuView, _machine: MachineView) -> Judgement:
    said = ("is lost", "requires reset")  # those are gpu-lost's
    errors = {path: text for path, text in gpu.errors.items() if not any(word in text.lower() for word in said)}
    if errors:
        shown = ", ".join(f"{path} {text}" for path, text in list(errors.items())[:4])
        if all("insufficient permissions" in text.lower() for text in errors.values()):
            return unknown("the collector may not read everything", shown, remedy="collect as root")
        return failed(f"{len(errors)} values cannot be read: {shown}", shown, "no errors")
    return passed("no errors", "no errors")


def _recovery(gpu: GpuView, _machine: MachineView) -> Judgement:
    word = gpu.text(fields.RECOVERY).lower()
    if word in ("", "none"):
        return passed(word, "none")
    if word == "drain p2p":
        return warned("the GPU asks to drain peer-to-peer work", word, "none", action=Action.DRAIN)
    if word in _RECOVERY:
        return failed(f"the GPU itself asks for: {word}", word, "none", action=_RECOVERY[word])
    return unknown(f"the GPU asks for {word!r}, which this program does not know", word)


def _inforom(machine: MachineView) -> list[Judgement]:
    found = []
    try:
        stray = machine.smi.stray
    except NotObservedError:
        result = machine.result("nvidia_smi_xml")
        stray = tuple(result.text.splitlines()) if result else ()
        if not any("infoROM" in line for line in stray):
            raise
    for line in stray:
        if "inforom is corrupted" in line.lower():
            device = line.rsplit(" ", 1)[-1].lower()
            found.append(failed("the infoROM is corrupted", line, "valid", device=device))
    for gpu in machine.gpus:
        checksum = gpu.peek(fields.INFOROM_CHECKSUM)
        if checksum.state is State.VALUE and checksum.text.lower() not in ("valid", "ok"):
            found.append(failed("the infoROM's checksum is wrong", checksum.text, "valid", device=gpu.bus_id))
        elif checksum.state is State.ERROR:
            found.append(unknown(f"the infoROM's checksum reads {checksum.text!r}", checksum.text, device=gpu.bus_id))
        elif checksum.state is State.NOT_AVAILABLE:
            found.append(skipped(f"the infoROM's checksum is {checksum.text} on this GPU", device=gpu.bus_id))
    return found or [passed("no warning", "no warning")]


def _persistence(gpu: GpuView, _machine: MachineView) -> Judgement:
    word = gpu.word(fields.PERSISTENCE, "enabled", "disabled")
    if word == "disabled":
        return warned(
            "persistence mode is off: every job starts the driver anew", word, "enabled", action=Action.CONFIG
        )
    return passed(word, "enabled")


def _compute_mode(gpu: GpuView, _machine: MachineView) -> Judgement:
    word = gpu.text(fields.COMPUTE_MODE).lower()
    if word and word != "default":
        return warned(
            "the compute mode is not Default: containers may be refused", word, "default", action=Action.CONFIG
        )
    return passed(word, "default")


def _gsp(gpu: GpuView, machine: MachineView) -> Judgement:
    version = gpu.reading(fields.GSP)
    if version.state is not State.NOT_AVAILABLE:
        return passed(version.text)
    if gpu.traits.virtual:
        return skipped("the GSP of a vGPU belongs to its host")
    if "Open Kernel Module" in machine.file("/proc/driver/nvidia/version"):
        return failed("the open driver runs without GSP firmware", version.text, "a version")
    return passed(version.text)


def _mig(gpu: GpuView, machine: MachineView) -> Judgement:
    modes = ("enabled", "disabled")
    current, pending = gpu.word(fields.MIG, *modes), gpu.word(fields.MIG_PENDING, *modes)
    if current and pending and current != pending:
        return failed(f"MIG is {current}, {pending} after a reset", current, pending, action=Action.RESET_GPU)
    wanted, seen = machine.expected.mig, sum(other.gpu.mig_devices for other in machine.gpus)
    if current and wanted is not None and seen < wanted:
        return failed(
            "the machine has fewer MIG instances than the layout says (they do not outlive a reboot)",
            f"MIG {current}, {seen} instances on all GPUs",
            f"{wanted} instances",
        )
    if current == "enabled" and gpu.gpu.mig_devices == 0:
        return warned("MIG is on and has no instance: nothing can use this GPU", 0, "1 or more", action=Action.CONFIG)
    return passed(f"{current}, {gpu.gpu.mig_devices} instances")


def _mig_mixed(machine: MachineView) -> Judgement:
    modes = {gpu.bus_id: gpu.peek(fields.MIG) for gpu in machine.gpus}
    assert machine.smi  # noqa: S101 - reading records it and raises
    values = {reading.text for reading in modes.values() if reading.state is State.VALUE}
    if all(reading.state is State.NOT_AVAILABLE for reading in modes.values()):
        return skipped("no GPU here can do MIG")
    if any(reading.state is not State.VALUE for reading in modes.values()):
        return unknown("some GPUs do not say whether MIG is on")
    if len(values) > 1:
        shown = ", ".join(f"{bus_id} {reading.text}" for bus_id, reading in modes.items())
        return failed(
            "MIG is on for some GPUs only: the device plugin's single strategy refuses that", shown, "all alike"
        )
    return passed(values.pop(), "all alike")


CHECKS = (
    GpuCheck(
        CheckText(
            "gpu-recovery-action",
            "The GPU itself asks for nothing",
            "gpu_recovery_action",
            "FAIL for any reset or reboot; WARN for Drain P2P",
            "DCGM, MEM: NVIDIA's own verdict",
            "do what it asks: drain, then reset the GPU or reboot",
            Action.RESET_GPU,
        ),
        _recovery,
    ),
    GpuCheck(
        CheckText(
            "gpu-lost",
            "The driver can reach the GPU",
            "every field of nvidia-smi -q -x",
            "FAIL when one reads `GPU is lost` or `GPU requires reset`",
            "NKP 231",
            "drain and reboot; a cold start when it stays lost",
            Action.REBOOT,
        ),
        _lost,
    ),
    GpuCheck(
        CheckText(
            "gpu-readable",
            "No value of the GPU is an error",
            "every field of nvidia-smi -q -x",
            "FAIL when one reads Unknown Error or ERR!; UNKNOWN for Insufficient Permissions",
            "own; dcgm-exporter 319",
            "drain and reboot; replace the card when it returns",
            Action.REBOOT,
        ),
        _readable,
    ),
    MachineCheck(
        CheckText(
            "gpu-inforom",
            "No infoROM is corrupted",
            "lines around the answer of nvidia-smi, inforom.checksum_validation",
            "FAIL on the warning or a wrong checksum",
            "AZD, GPU Operator",
            "replace the card",
            Action.RMA,
        ),
        _inforom,
        gpus_only=True,
    ),
    GpuCheck(
        CheckText(
            "gpu-persistence",
            "Persistence mode is on",
            "persistence_mode",
            "WARN when Disabled",
            "GPUD",
            "systemctl enable --now nvidia-persistenced",
            Action.CONFIG,
        ),
        _persistence,
    ),
    GpuCheck(
        CheckText(
            "gpu-compute-mode",
            "The compute mode is Default",
            "compute_mode",
            "WARN for another mode",
            "own",
            "nvidia-smi -i BUS_ID -c DEFAULT",
            Action.CONFIG,
        ),
        _compute_mode,
    ),
    GpuCheck(
        CheckText(
            "gpu-gsp",
            "The GSP firmware is loaded",
            "gsp_firmware_version, /proc/driver/nvidia/version",
            "FAIL when N/A under the open kernel module",
            "own",
            "reinstall the driver's firmware package and reboot",
            Action.REBOOT,
        ),
        _gsp,
    ),
    GpuCheck(
        CheckText(
            "gpu-mig",
            "MIG is as the layout says",
            "mig_mode, mig_devices",
            "FAIL when a reset is needed or the machine has fewer instances than the layout says; WARN on without any",
            "NKP 225, 343",
            "reset the GPU, or create the instances again (they do not outlive a reboot)",
            Action.CONFIG,
        ),
        _mig,
    ),
    MachineCheck(
        CheckText(
            "gpu-mig-mixed",
            "MIG is on for all GPUs of the machine or for none",
            "mig_mode of every GPU",
            "FAIL when mixed",
            "NKP",
            "switch MIG on or off for all GPUs of the machine",
            Action.CONFIG,
        ),
        _mig_mixed,
        gpus_only=True,
    ),
)
