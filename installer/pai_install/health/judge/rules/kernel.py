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
_CORRECTED = re.compile(
    r"Corrected error|has been corrected|severity: corrected|type: corrected|EDAC .*\bCE\b", re.IGNORECASE
)
# bit 61 of a bank's status: the processor did not correct it (Intel SDM volume 3B, IA32_MCi_STATUS)
_BANK_STATUS = re.compile(r"Bank \d+: (?:0x)?([0-9a-f]{16})\b", re.IGNORECASE)
_NOT_CORRECTED = 1 << 61
_UNCORRECTED = re.compile(
    r"Uncorrected|Machine Check Exception|Deferred error|severity: (?:fatal|recoverable)|type: (?:fatal|recoverable)"
    r"|(?<!non-)\bfatal\b|panic|EDAC .*\bUE\b",
    re.IGNORECASE,
)
_NETWORK_DISK = re.compile(r"\b([nr]bd\d+)(?:p\d+|-\d+)?\b")
_NFS_SERVER = re.compile(r"nfs: server (\S+) (OK|not responding)")
_HANGS = re.compile(r"(?:(\S+): )?NETDEV WATCHDOG: (?:(\S+) \(|CPU)|\s(\S+): (?:tx_timeout: |PCIe link lost)")
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
        return passed(value, "none lately", message="earlier in this boot, not recently")
    if recent and not warn_only:
        return failed(fatal, value, "none", action=action)
    return warned(fatal, value, "none", action=action)


@machine_check(
    id="kernel-machine-checks",
    title="No machine check exceptions",
    reads="kernel log of this boot",
    rule="WARN for uncorrected exceptions, or exceptions of unknown kind, within xid-window-hours",
    limits=("xid-window-hours",),
    source="own",
    remedy="find the failing module or processor with `ras-mc-ctl --summary` or the BMC's log",
    action=Action.DRAIN,
)
def machine_checks(machine: MachineView) -> Result:
    events = [event for event in machine.events(LogKind.MACHINE_CHECK) if machine.recent(event.time)]
    corrected = [_is_corrected(event.text) for event in events]
    if True in corrected and False not in corrected:
        value = f"{len(events)} lines, last: {events[-1].text}"
        return passed(
            value, "none uncorrected", message="corrected errors. The check host-edac counts corrected memory errors"
        )
    return _events(
        machine,
        machine.events(LogKind.MACHINE_CHECK),
        "the processor or memory reports hardware errors",
        warn_only=True,
    )


def _is_corrected(text: str) -> bool | None:
    """Whether a line speaks of a corrected error. None if it does not say: several lines are about one error."""
    if match := _BANK_STATUS.search(text):
        return not int(match.group(1), 16) & _NOT_CORRECTED
    if _UNCORRECTED.search(text):
        return False
    return True if _CORRECTED.search(text) else None


@machine_check(
    id="kernel-hung-tasks",
    title="No task hangs in the kernel",
    reads="kernel log of this boot",
    rule="WARN for a hung task within xid-window-hours, or an NFS server that did not answer again",
    limits=("xid-window-hours",),
    source="NPD",
    remedy="find the cause of the wait. Reboot if the task does not end",
    action=Action.REBOOT,
)
def hung(machine: MachineView) -> Result:
    tasks = machine.events(LogKind.HUNG_TASK)
    if not any(machine.recent(event.time) for event in tasks) and (silent := _silent_servers(machine)):
        message = "an NFS server does not answer: tasks wait for it"
        return warned(message, f"{len(silent)} servers, last: {silent[-1].text}", "none", action=Action.NONE)
    return _events(machine, tasks, "tasks hang in the kernel", warn_only=True)


def _silent_servers(machine: MachineView) -> list[LogEvent]:
    """The last words about each NFS server that has not answered since."""
    last = {}
    for event in machine.events(LogKind.NFS_SERVER):
        if machine.recent(event.time) and (match := _NFS_SERVER.search(event.text)):
            last[match.group(1)] = (event, match.group(2))
    return [event for event, word in last.values() if word != "OK"]


@machine_check(
    id="kernel-filesystems",
    title="No disk or file system errors",
    reads="kernel log of this boot",
    rule="FAIL within xid-window-hours. WARN later in the same boot. Network block devices count if mounted",
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
        return re.search(rf"^/dev/{name.group(1)}(?:p\d+)?\s", machine.file("/proc/mounts"), re.MULTILINE) is None
    except NotObservedError:
        return False


@machine_check(
    id="kernel-oom",
    title="The machine did not run out of memory",
    reads="kernel log of this boot",
    rule="WARN within xid-window-hours. A container at its own limit does not count",
    limits=("xid-window-hours",),
    source="NPD",
    remedy="set memory limits for jobs, or add memory",
    action=Action.NONE,
)
def oom(machine: MachineView) -> Result:
    return _events(machine, machine.events(LogKind.OUT_OF_MEMORY), "the machine ran out of memory", warn_only=True)


@machine_check(
    id="kernel-oops",
    title="No kernel Oops or BUG",
    reads="kernel log of this boot",
    rule="WARN for one in this boot: the kernel does not release its locks and memory",
    source="NPD",
    remedy="reboot the machine when it is idle. If the fault returns, install a newer kernel or driver",
    action=Action.REBOOT,
)
def oops(machine: MachineView) -> Result:
    events = machine.events(LogKind.KERNEL_FAULT)
    if not events:
        return passed("none", "none")
    value = f"{len(events)} lines, first: {events[0].text}"
    return warned("the kernel crashed in part (Oops, BUG) in this boot", value, "none", action=Action.REBOOT)


@machine_check(
    id="rdma-device-health",
    title="The mlx5 driver reports no fault of an InfiniBand or RoCE card",
    reads="kernel log of this boot",
    rule="FAIL within xid-window-hours. WARN later in the same boot, and for causes outside the card: cable or "
    "transceiver, power of the slot, heat (within xid-window-hours)",
    limits=("xid-window-hours",),
    source="NVS",
    remedy="drain and reboot the machine. If the fault returns, update the card's firmware or replace the card",
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
            yield passed(value, "none lately", device=device, message="earlier in this boot, not recently")
            continue
        if not sick:
            message = "the network card reports a fault of its cable, power, or cooling"
            remedy = "check cable and transceiver, the slot's power in the BIOS, and the air flow"
            yield warned(message, value, "none", device=device, action=Action.CONFIG, remedy=remedy)
            continue
        verdict = failed if any(recent for _, recent in sick) else warned
        yield verdict("the driver calls the network card sick", value, "none", device=device, action=Action.REBOOT)
    if not found:
        yield passed("none", "none")


@machine_check(
    id="network-carrier",
    title="No network card hangs, and no link goes up and down, in the kernel log",
    reads="kernel log of this boot",
    rule="WARN for a link that went down more than carrier-changes times within xid-window-hours, except an unused "
    "port (no link now, and not in a bond or bridge). WARN for a card that hangs while it sends, FAIL for one "
    "that is lost on the bus, in those hours",
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
    sick = list(_sick_cards(machine))
    yield from sick
    flapping = {name: count for name, count in sorted(lost.items()) if count > most and not machine.unused(name)}
    for name, count in flapping.items():
        yield warned("the link flaps", f"down {count} times", f"<= {most:.0f}", device=name)
    if not flapping and not sick:
        yield passed(f"down at most {max(lost.values(), default=0)} times", f"<= {most:.0f}")


def _sick_cards(machine: MachineView) -> Iterator[Result]:
    """A result for each network card that hung while it sent, or that its driver can no longer reach."""
    corrected: dict[str, list[str]] = {}
    for event in machine.events(LogKind.NETWORK_DEVICE):
        if machine.recent(event.time) and (match := _HANGS.search(event.text)):
            corrected.setdefault(next(filter(None, match.groups()), "a network card"), []).append(event.text)
    for name, lines in sorted(corrected.items()):
        value = f"{len(lines)} lines, last: {lines[-1]}"
        if any("PCIe link lost" in line for line in lines):
            remedy = "drain and reboot the machine. If the fault returns, reseat or replace the card"
            message = "the network card is lost on the bus"
            yield failed(message, value, "none", device=name, action=Action.REBOOT, remedy=remedy)
            continue
        remedy = "if the fault returns, update the card's driver and firmware"
        yield warned("the network card hangs while it sends", value, "none", device=name, remedy=remedy)


@machine_check(
    id="pcie-bandwidth",
    title="The kernel reports no limited PCIe link of a GPU or network card",
    reads="kernel log of this boot, lspci",
    rule="WARN when the link has fewer lanes than the card or, for a network card, less speed",
    source="imbue; Linux's own report",
    remedy="reseat card, riser, and cables. Check the slot in the BIOS. Many slots have fewer lanes by design",
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
        yield warned("the PCIe link is slower than the card", value, able, device=bus_id)
    if not found:
        yield passed("none", "none")
