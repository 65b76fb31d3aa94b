"""Machine faults in the kernel log: system, disks, network cards, buses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from pai_install.checks.evidence import NotObservedError
from pai_install.checks.result import Result, failed, passed, warned
from pai_install.checks.verdict import Action
from pai_install.health.evidence.parse.kernel_log import LogEvent, LogKind
from pai_install.health.evidence.parse.nvidia import normalise_bus_id
from pai_install.health.judge.check import machine_check
from pai_install.health.judge.view import MachineView

_BUS_ID = re.compile(r"\b[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\b")
_LIMITED = re.compile(
    r"\b([0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]): ([\d.]+ Gb/s) available PCIe bandwidth, limited by "
    r"(.*?) x(\d+) link.*?\(capable of ([\d.]+ Gb/s) with (.*?) x(\d+) link"
)
# one error is several lines, of which one says how grave it is (AMD, APEI)
_CORRECTED = re.compile(r"Corrected error|has been corrected|severity: corrected|type: corrected", re.IGNORECASE)
_UNCORRECTED = re.compile(
    r"Uncorrected|Machine Check Exception|Deferred error|severity: (?:fatal|recoverable)|type: (?:fatal|recoverable)"
    r"|(?<!non-)\bfatal\b|panic|EDAC .*\bUE\b",
    re.IGNORECASE,
)
_NETWORK_DISK = re.compile(r"\bdev(?:ice)? (nbd\d+|rbd\d+)")
_BESIDE_THE_CARD = re.compile(r"Port module event|insufficient power|High temperature")
_CARRIER = re.compile(r"(.*)(?:[Ll]ost carrier|[Ll]ink (?:is )?[Dd](?:own|OWN)\b)")
_DEVICE = re.compile(r"(?<![\w.:])([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]|[a-z][\w.@-]*\d[\w.@-]*)(?=[ :(])")


def _events(
    machine: MachineView,
    events: Sequence[LogEvent],
    fatal: str,
    *,
    warn_only: bool = False,
    action: Action | None = None,
) -> Result:
    recent = any(machine.recent(event.time) for event in events)
    if not events:
        return passed("none", "none")
    value = f"{len(events)} lines, last: {events[-1].text}"
    if warn_only and not recent:
        return passed(value, "none lately", message="earlier in this boot, not lately")
    if recent and not warn_only:
        return failed(fatal, value, "none", action=action)
    return warned(fatal, value, "none", action=action)


@machine_check(
    id="kernel-machine-checks",
    title="No machine checks",
    reads="kernel log of this boot",
    rule="WARN when there are any within xid-window-hours that were not corrected, or do not say",
    limits=("xid-window-hours",),
    source="own",
    remedy="find the failing module or processor with `ras-mc-ctl --summary` or the BMC's log",
    action=Action.DRAIN,
)
def machine_checks(machine: MachineView) -> Result:
    events = [event for event in machine.events(LogKind.MACHINE_CHECK) if machine.recent(event.time)]
    corrected = sum(bool(_CORRECTED.search(event.text)) for event in events)
    if corrected and not any(_UNCORRECTED.search(event.text) for event in events):
        value = f"{len(events)} lines, last: {events[-1].text}"
        return passed(
            value, "none uncorrected", message="corrected errors. The check host-edac counts those of the memory"
        )
    return _events(
        machine,
        machine.events(LogKind.MACHINE_CHECK),
        "the processor or memory reports hardware errors",
        warn_only=True,
    )


@machine_check(
    id="kernel-hung-tasks",
    title="No task hangs in the kernel",
    reads="kernel log of this boot",
    rule="WARN when there are any within xid-window-hours",
    limits=("xid-window-hours",),
    source="NPD",
    remedy="find the cause of the wait. Reboot if the task does not end",
    action=Action.REBOOT,
)
def hung(machine: MachineView) -> Result:
    return _events(machine, machine.events(LogKind.HUNG_TASK), "tasks hang in the kernel", warn_only=True)


@machine_check(
    id="kernel-filesystems",
    title="No disk or file system errors",
    reads="kernel log of this boot",
    rule="FAIL within xid-window-hours, WARN later in the same boot; network block devices count if mounted",
    limits=("xid-window-hours",),
    source="NPD",
    remedy="save the data, check the disk (smartctl -a), repair or replace it",
    action=Action.DRAIN,
)
def filesystems(machine: MachineView) -> Result:
    events = [event for event in machine.events(LogKind.FILESYSTEM) if not _detached(event, machine)]
    return _events(machine, events, "a disk or file system reports errors")


def _detached(event: LogEvent, machine: MachineView) -> bool:
    """Whether a line is about a network block device that is not mounted: its errors end when it is detached."""
    name = _NETWORK_DISK.search(event.text)
    if name is None:
        return False
    try:
        return f"/dev/{name.group(1)}" not in machine.file("/proc/mounts")
    except NotObservedError:
        return False


@machine_check(
    id="kernel-oom",
    title="The machine did not run out of memory",
    reads="kernel log of this boot",
    rule="WARN when it did within xid-window-hours; a container at its own limit is no case",
    limits=("xid-window-hours",),
    source="NPD",
    remedy="give jobs memory limits, or the machine more memory",
    action=Action.NONE,
)
def oom(machine: MachineView) -> Result:
    return _events(machine, machine.events(LogKind.OUT_OF_MEMORY), "the machine ran out of memory", warn_only=True)


@machine_check(
    id="kernel-oops",
    title="The kernel has not broken (Oops, BUG)",
    reads="kernel log of this boot",
    rule="WARN when it did in this boot: what it held then is not given back",
    source="NPD",
    remedy="reboot the machine at its next idle moment. Look for a newer kernel or driver when it returns",
    action=Action.REBOOT,
)
def oops(machine: MachineView) -> Result:
    events = machine.events(LogKind.KERNEL_FAULT)
    if not events:
        return passed("none", "none")
    value = f"{len(events)} lines, first: {events[0].text}"
    return warned("the kernel has broken in this boot", value, "none", action=Action.REBOOT)


@machine_check(
    id="rdma-device-health",
    title="The driver calls no InfiniBand or RoCE card sick (mlx5)",
    reads="kernel log of this boot",
    rule="FAIL within xid-window-hours, WARN later in the same boot; WARN for what is beside the card: cable or "
    "transceiver, power of the slot, heat (within xid-window-hours)",
    limits=("xid-window-hours",),
    source="NVS",
    remedy="drain and reboot the machine. Update the card's firmware, replace the card when it returns",
    action=Action.REBOOT,
)
def rdma_device(machine: MachineView) -> Iterator[Result]:
    found: dict[str, list[tuple[str, bool]]] = {}
    for event in machine.events(LogKind.RDMA_DEVICE):
        name = _BUS_ID.search(event.text)
        found.setdefault(normalise_bus_id(name.group()) if name else "", []).append(
            (event.text, machine.recent(event.time))
        )
    for device, lines in sorted(found.items()):
        sick = [line for line in lines if not _BESIDE_THE_CARD.search(line[0])]
        value = f"{len(sick or lines)} lines, last: {(sick or lines)[-1][0]}"
        if not sick and not any(recent for _, recent in lines):
            yield passed(value, "none lately", device=device, message="earlier in this boot, not lately")
            continue
        if not sick:
            message = "the network card complains of its cable, its power or heat"
            remedy = "check cable and transceiver, the slot's power in the BIOS, and the air flow"
            yield warned(message, value, "none", device=device, action=Action.CONFIG, remedy=remedy)
            continue
        verdict = failed if any(recent for _, recent in sick) else warned
        yield verdict("the driver calls the network card sick", value, "none", device=device, action=Action.REBOOT)
    if not found:
        yield passed("none", "none")


@machine_check(
    id="network-carrier",
    title="No network link goes up and down in the kernel log",
    reads="kernel log of this boot",
    rule="WARN for a link that went down more than carrier-changes times within xid-window-hours, but for an unused "
    "port: one without a link now, and in no bond or bridge",
    limits=("carrier-changes", "xid-window-hours"),
    source="AZ, NVS",
    remedy="check cable, transceiver and switch port",
    action=Action.NONE,
)
def carrier(machine: MachineView) -> Iterator[Result]:
    lost = Counter(
        (_DEVICE.findall(match.group(1)) or ["a link"])[-1]  # "mlx5_core 0000:01:00.0 ib0: Link down": ib0
        for event in machine.events(LogKind.CARRIER_LOST)
        if machine.recent(event.time) and (match := _CARRIER.search(event.text))
    )
    most = machine.limit("carrier-changes")
    flapping = {name: count for name, count in sorted(lost.items()) if count > most and not machine.unused(name)}
    for name, count in flapping.items():
        yield warned("the link goes up and down", f"down {count} times", f"<= {most:.0f}", device=name)
    if not flapping:
        yield passed(f"down at most {max(lost.values(), default=0)} times", f"<= {most:.0f}")


@machine_check(
    id="pcie-bandwidth",
    title="The kernel calls no GPU's or network card's PCIe link narrow",
    reads="kernel log of this boot, lspci",
    rule="WARN where it is limited by fewer lanes than the card has, for a network card also by speed",
    source="imbue; Linux's own report",
    remedy="reseat card, riser and cables. Check the slot's settings in the BIOS. Many slots are built narrower",
    action=Action.NONE,
)
def bandwidth(machine: MachineView) -> Iterator[Result]:
    found = {}
    for event in machine.events(LogKind.LINK_LIMITED):
        match = _LIMITED.search(event.text)
        if match is None or int(match.group(4)[:3]) == 0:  # a virtual port has no lanes
            continue
        device, now, speed, lanes, able, best, width = match.groups()
        bus_id = normalise_bus_id(device)
        network = "mlx5_core" in event.text or any(
            item.bus_id == bus_id and item.device_class.startswith("02") for item in machine.pci
        )
        narrow, slow = int(lanes[:3]) < int(width[:3]), speed != best
        if (network and (narrow or slow)) or (narrow and bus_id in machine.bus_ids):
            found[bus_id] = (f"{now} ({speed} x{lanes})", f"{able} ({best} x{width})")
    for bus_id, (value, able) in sorted(found.items()):
        yield warned("the PCIe link gives less than the card could use", value, able, device=bus_id)
    if not found:
        yield passed("none", "none")
