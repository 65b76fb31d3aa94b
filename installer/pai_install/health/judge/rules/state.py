"""The state that a GPU reports: lost, unreadable, requested action, and configuration."""

from __future__ import annotations

import re

from pai_install.checks.evidence import NotObservedError
from pai_install.checks.result import Result, failed, passed, skipped, unknown, warned
from pai_install.checks.verdict import Action
from pai_install.health.evidence import fields
from pai_install.health.evidence.reading import Reading, State
from pai_install.health.judge.check import gpu_check, machine_check
from pai_install.health.judge.gpu_view import GpuView
from pai_install.health.judge.view import MachineView

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


@gpu_check(
    id="gpu-recovery-action",
    title="The GPU requests no recovery action",
    reads="gpu_recovery_action (before 570: gpu_reset_status, reset required, drain and reset recommended)",
    rule="FAIL for any reset or reboot. WARN for Drain P2P",
    source="DCGM, MEM: NVIDIA's own verdict",
    remedy="follow the requested action: drain, and then reset the GPU or reboot",
    action=Action.RESET_GPU,
)
def recovery(gpu: GpuView, _machine: MachineView) -> Result:
    word = gpu.recovery_action
    if (
        not word
        and gpu.peek(fields.RECOVERY).state is State.ABSENT
        and gpu.traits.must_report(fields.RESET_REQUIRED, gpu.driver_major)
    ):
        # Drivers before 570 have no field for the recovery action. These two flags say the same.
        flags = [gpu.word(fields.RESET_REQUIRED, "yes", "no")]
        if not gpu.traits.consumer or gpu.peek(fields.DRAIN_AND_RESET).state is State.VALUE:
            flags.append(gpu.word(fields.DRAIN_AND_RESET, "yes", "no"))
        return passed(", ".join(flags), "no")
    if not word:
        return passed(gpu.text(fields.RECOVERY), "none")
    if word == "drain p2p":
        return warned("the GPU requests a drain of peer-to-peer work", word, "none", action=Action.DRAIN)
    if word in _RECOVERY:
        return failed(f"the GPU requests: {word}", word, "none", action=_RECOVERY[word])
    return unknown(f"the GPU requests {word!r}, which pai-install does not know", word)


@gpu_check(
    id="gpu-lost",
    title="The driver can reach the GPU",
    reads="every field of nvidia-smi -q -x",
    rule="FAIL when one reads `GPU is lost` or `GPU requires reset`",
    source="NKP 231",
    remedy="drain and reboot. If the GPU is still lost, power the machine off and on",
    action=Action.REBOOT,
)
def reachable(gpu: GpuView, _machine: MachineView) -> Result:
    gpu.reading(fields.UUID)
    errors = gpu.errors
    lost = [path for path, text in errors.items() if "is lost" in text.lower()]
    if lost:
        return failed("the GPU is lost: the driver cannot reach it", f"GPU is lost ({len(lost)} fields)", "reachable")
    reset = [path for path, text in errors.items() if "requires reset" in text.lower()]
    if reset:
        return failed(
            "the GPU must be reset", f"GPU requires reset ({len(reset)} fields)", "usable", action=Action.RESET_GPU
        )
    return passed("reachable", "reachable")


@gpu_check(
    id="gpu-readable",
    title="No value of the GPU is an error",
    reads="every field of nvidia-smi -q -x",
    rule="FAIL when one reads Unknown Error, ERR! or another error of NVML. UNKNOWN for Insufficient Permissions",
    source="own; dcgm-exporter 319",
    remedy="drain and reboot. If the fault returns, replace the card",
    action=Action.REBOOT,
)
def readable(gpu: GpuView, _machine: MachineView) -> Result:
    words = ("is lost", "requires reset")  # those are gpu-lost's
    errors = {path: text for path, text in gpu.errors.items() if not any(word in text.lower() for word in words)}
    if errors:
        shown = ", ".join(f"{path} {text}" for path, text in list(errors.items())[:4])
        if all("insufficient permissions" in text.lower() for text in errors.values()):
            return unknown("the collector lacks permissions", shown, remedy="run the collector as root")
        action = Action.RESET_GPU if gpu.needs_reset else None
        return failed(f"{len(errors)} values cannot be read: {shown}", shown, "no errors", action=action)
    return passed("no errors", "no errors")


@machine_check(
    id="gpu-inforom",
    title="No infoROM is corrupted",
    reads="lines around the output of nvidia-smi, inforom.checksum_validation",
    rule="FAIL on the warning or a wrong checksum",
    source="AZD, GPU Operator",
    remedy="replace the card",
    action=Action.RMA,
    gpus_only=True,
)
def inforom(machine: MachineView) -> list[Result]:
    found = []
    try:
        stray = machine.smi.stray
    except NotObservedError:
        # The warning stands outside the XML, so it counts even where the XML cannot be parsed.
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


@gpu_check(
    id="gpu-persistence",
    title="Persistence mode is on",
    reads="persistence_mode",
    rule="WARN when Disabled",
    source="GPUD",
    remedy="run systemctl enable --now nvidia-persistenced",
)
def persistence(gpu: GpuView, _machine: MachineView) -> Result:
    word = gpu.word(fields.PERSISTENCE, "enabled", "disabled")
    if word == "disabled":
        return warned("persistence mode is off: every job restarts the driver", word, "enabled", action=Action.CONFIG)
    return passed(word, "enabled")


@gpu_check(
    id="gpu-compute-mode",
    title="The compute mode is Default",
    reads="compute_mode",
    rule="WARN for any other mode",
    source="own",
    remedy="run nvidia-smi -i BUS_ID -c DEFAULT",
)
def compute_mode(gpu: GpuView, _machine: MachineView) -> Result:
    word = gpu.text(fields.COMPUTE_MODE).lower()
    if word and word != "default":
        return warned(
            "the compute mode is not Default: containers may fail to start", word, "default", action=Action.CONFIG
        )
    return passed(word, "default")


@gpu_check(
    id="gpu-vgpu-license",
    title="A vGPU has its licence",
    reads="vgpu_software_licensed_product/license_status",
    rule="WARN when unlicensed: the driver reduces its speed later. SKIP for a whole GPU",
    source="NVIDIA's vGPU licensing guide",
    remedy="configure a licence: /etc/nvidia/gridd.conf, the client token, nvidia-gridd.service",
)
def license_status(gpu: GpuView, _machine: MachineView) -> Result:
    if not gpu.traits.virtual:
        return skipped("a whole GPU needs no licence")
    if not gpu.peek(fields.LICENSE).text:
        return unknown("the driver does not report the licence of this vGPU")
    word = gpu.text(fields.LICENSE)
    if word.lower().startswith("unlicensed"):
        return warned("this vGPU has no licence and will be slowed down", word, "Licensed", action=Action.CONFIG)
    if word and not word.lower().startswith("licensed"):
        return unknown(f"the licence reads {word!r}, which pai-install does not know", word)
    return passed(word, "Licensed")


@gpu_check(
    id="gpu-gsp",
    title="The GSP firmware is loaded",
    reads="gsp_firmware_version, /proc/driver/nvidia/version",
    rule="FAIL when N/A under the open kernel module",
    source="own",
    remedy="reinstall the driver's firmware package and reboot",
    action=Action.REBOOT,
)
def gsp(gpu: GpuView, machine: MachineView) -> Result:
    version = gpu.reading(fields.GSP)
    if version.state is not State.NOT_AVAILABLE:
        form = re.fullmatch(r"\d{3}\.[\d.]+", version.text)
        return passed(version.text) if form else unknown("the GSP firmware states no version", version.text)
    if gpu.traits.virtual:
        return skipped("the host of a vGPU manages its GSP")
    # Only the open kernel module cannot run without this firmware.
    if "Open Kernel Module" in machine.file("/proc/driver/nvidia/version"):
        return failed("the open driver runs without GSP firmware", version.text, "a version")
    return passed(version.text)


@gpu_check(
    id="gpu-mig",
    title="MIG matches the layout",
    reads="mig_mode, mig_devices",
    rule="FAIL when a reset is pending, or instances of the layout are missing. WARN when on without instances",
    source="NKP 225, 343",
    remedy="reset the GPU, or re-create the instances (a reboot deletes them)",
)
def mig(gpu: GpuView, machine: MachineView) -> Result:
    modes = ("enabled", "disabled")
    current, pending = gpu.word(fields.MIG, *modes), gpu.word(fields.MIG_PENDING, *modes)
    if current and pending and current != pending:
        return failed(f"MIG is {current}, {pending} after a reset", current, pending, action=Action.RESET_GPU)
    # The layout gives one number for the machine, so the instances of all its GPUs count together.
    wanted, seen = machine.expected.mig, sum(other.gpu.mig_devices for other in machine.gpus)
    if current and wanted is not None and seen < wanted:
        return failed(
            "the machine has fewer MIG instances than in the layout (a reboot deletes them)",
            f"MIG {current}, {seen} instances on all GPUs",
            f"{wanted} instances",
        )
    if current == "enabled" and gpu.gpu.mig_devices == 0:
        return warned("MIG is on without instances: no job can use this GPU", 0, "1 or more", action=Action.CONFIG)
    return passed(f"{current}, {gpu.gpu.mig_devices} instances")


def _mig_mode(gpu: GpuView) -> Reading:
    """Returns the reading, or "not available" for cards and drivers older than MIG."""
    found = gpu.peek(fields.MIG)
    silent = found.state is State.ABSENT and not gpu.traits.must_report(fields.MIG, gpu.driver_major)
    return Reading(State.NOT_AVAILABLE) if silent else found


@machine_check(
    id="gpu-mig-mixed",
    title="MIG is on for all GPUs of the machine, or off for all",
    reads="mig_mode of every GPU",
    rule="FAIL when only some have MIG on",
    source="NKP",
    remedy="enable or disable MIG for all GPUs of the machine",
    gpus_only=True,
)
def mig_mixed(machine: MachineView) -> Result:
    modes = {gpu.bus_id: _mig_mode(gpu) for gpu in machine.gpus}
    assert machine.smi  # noqa: S101 - reading records it and raises
    values = {reading.text for reading in modes.values() if reading.state is State.VALUE}
    if all(reading.state is State.NOT_AVAILABLE for reading in modes.values()):
        return skipped("no GPU of this machine supports MIG")
    if any(reading.state is not State.VALUE for reading in modes.values()):
        return unknown("some GPUs do not report their MIG mode")
    if len(values) > 1:
        shown = ", ".join(f"{bus_id} {reading.text}" for bus_id, reading in modes.items())
        return failed(
            "MIG is on for only some GPUs: the device plugin's strategy `single` rejects this", shown, "all alike"
        )
    return passed(values.pop(), "all alike")
