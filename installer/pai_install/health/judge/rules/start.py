"""Whether the driver could start every GPU, and whether one is kept from it on purpose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from pai_install.checks.result import Result, failed, passed, unknown, warned
from pai_install.checks.verdict import Action, Verdict
from pai_install.health.evidence.parse.host import parse_modules
from pai_install.health.evidence.parse.kernel_log import LogEvent, LogKind
from pai_install.health.evidence.parse.nvidia import normalise_bus_id
from pai_install.health.judge.check import machine_check
from pai_install.health.judge.view import MachineView

_GPU = re.compile(r"NVRM:.*?\b((?:PCI:)?[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)\b")
_EXCLUDED = re.compile(r"\b((?:[0-9a-fA-F]{4,8}:)[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])\b|\b(GPU-[0-9a-zA-Z-]+)")

# word of the kernel's line -> cause, action, what to do; the first that fits
_CAUSES = (
    ("power cables", "its power cables are not connected", Action.CONFIG, "connect the power cables of the card"),
    ("is invalid", "the firmware gave it no address space", Action.CONFIG, "switch Above 4G Decoding on in the BIOS"),
    ("already bound to vfio", "it is given to virtual machines", Action.CONFIG, "unbind it from vfio-pci, or not"),
    (
        "nouveau",
        "another driver (nouveau) holds it",
        Action.CONFIG,
        "blacklist nouveau, rebuild the initramfs, and reboot",
    ),
    ("already bound", "another driver holds it", Action.CONFIG, "unload that driver and load the nvidia modules again"),
    (
        "was not called",
        "another driver holds it",
        Action.CONFIG,
        "blacklist nouveau, rebuild the initramfs, and reboot",
    ),
    ("No firmware image", "its firmware is not on the disk", Action.CONFIG, "install the driver's firmware package"),
    ("GSP firmware", "its firmware (GSP) does not start", Action.REBOOT, ""),
    ("", "the driver could not start it", Action.REBOOT, ""),
)
_ASIDE = ("None of the NVIDIA", "No NVIDIA", "probe routine failed", "rm_init_adapter")  # say it once more, of no GPU


@machine_check(
    id="gpu-driver-start",
    title="The driver initialised every GPU",
    reads="kernel log of this boot (RmInitAdapter, probe), nvidia-smi",
    rule="FAIL for a failed GPU that nvidia-smi does not show now. WARN within xid-window-hours for "
    "a GPU that nvidia-smi shows",
    limits=("xid-window-hours",),
    source="NVS; the driver's own words",
    remedy="power the machine off and on. If the fault returns, reseat or replace the card",
    action=Action.REBOOT,
    gpus_only=True,
)
def driver_start(machine: MachineView) -> Iterator[Result]:
    found: dict[str, LogEvent] = {}
    before = ""  # a line that names no GPU says the cause of the one that follows it
    for event in machine.events(LogKind.GPU_START):
        named = _GPU.search(event.text)
        device = normalise_bus_id(named.group(1)) if named else ""
        if not found or not any(word in event.text for word in _ASIDE):
            found[device] = replace(event, text=f"{before}{event.text}") if named else event
        before = "" if named else f"{event.text}, "
    if any(found) and "" in found:
        del found[""]  # the same once more, without a name
    results = [result for device, event in sorted(found.items()) if (result := _start_of(device, event, machine))]
    yield from results or [passed("none", "none")]


def _start_of(device: str, event: LogEvent, machine: MachineView) -> Result | None:
    shown = {gpu.bus_id.partition(".")[0]: gpu.bus_id for gpu in machine.gpus if not gpu.errors}
    cause, action, remedy = next(row[1:] for row in _CAUSES if row[0] in event.text)
    device = shown.get(device.partition(".")[0], device)
    well = device in shown.values() if device else bool(shown) and set(shown.values()) >= machine.bus_ids
    message = f"the driver did not initialise a GPU: {cause}"
    if not well:
        return failed(message, event.text, "started", device=device, action=action, remedy=remedy)
    if machine.recent(event.time):
        return warned(f"{message} (available now)", event.text, "started", device=device)
    return None


@machine_check(
    id="driver-nouveau",
    title="nouveau is not loaded",
    reads="/proc/modules",
    rule="FAIL when loaded, unless nvidia-smi shows every GPU on the bus",
    source="NVIDIA's installation guide",
    remedy="blacklist nouveau, rebuild the initramfs, and reboot",
    action=Action.REBOOT,
    gpus_only=True,
)
def nouveau(machine: MachineView) -> Result:
    # a kernel without loadable modules has no such file
    modules = parse_modules(machine.file("/proc/modules", missing=Verdict.SKIP))
    if not modules:
        return unknown("/proc/modules is empty")
    if "nouveau" not in modules:
        return passed("not loaded", "not loaded")
    shown = {gpu.bus_id for gpu in machine.gpus}
    # Where nvidia-smi shows every GPU on the bus, nouveau holds none of them.
    if shown and shown >= machine.bus_ids:
        return passed("loaded", "drives no GPU", message="nouveau is loaded and drives no GPU")
    return failed("the nouveau driver is loaded", "nouveau", "nvidia")


@machine_check(
    id="nvlink-driver-start",
    title="The driver found the peers of all NVLinks",
    reads="kernel log of this boot (knvlink ... PostRxDet)",
    rule="FAIL within xid-window-hours. WARN later in the same boot",
    limits=("xid-window-hours",),
    source="GPUD",
    remedy="reboot the machine. If the fault returns, check the fabric manager and the NVSwitches",
    action=Action.REBOOT,
    gpus_only=True,
)
def nvlink_start(machine: MachineView) -> Result:
    events = machine.events(LogKind.NVLINK_START)
    if not events:
        return passed("none", "none")
    verdict = failed if any(machine.recent(event.time) for event in events) else warned
    value = f"{len(events)} lines, last: {events[-1].text}"
    return verdict("the driver could not train NVLinks of its GPUs", value, "none", action=Action.REBOOT)


@machine_check(
    id="gpu-excluded",
    title="No GPU is excluded from use",
    reads="nvidia-smi -B",
    rule="WARN for a GPU that the driver is configured to exclude, usually because it is unhealthy",
    source="own",
    remedy="check NVreg_ExcludedGpus in /etc/modprobe.d. Repair the card or correct the layout",
    gpus_only=True,
)
def excluded(machine: MachineView) -> Iterator[Result]:
    text = machine.output("nvidia_smi_excluded", missing=Verdict.SKIP)
    if "no excluded" in text.lower():
        yield passed("none", "none")
        return
    names = [next(filter(None, match.groups())) for match in map(_EXCLUDED.search, text.splitlines()) if match]
    for name in names:
        device = normalise_bus_id(name) if ":" in name else name
        yield warned("the GPU is excluded from use", name, "none excluded", device=device, action=Action.CONFIG)
    if not names:
        yield unknown("the output of nvidia-smi -B cannot be read", text[:160])
