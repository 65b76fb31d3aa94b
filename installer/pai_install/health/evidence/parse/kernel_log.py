"""Kernel log lines -> events: Xid, SXid, PCIe AER, machine checks, hung tasks, file systems, memory."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from pai_install.health.evidence.parse.nvidia import normalise_bus_id


class LogKind(StrEnum):
    """The subject of a line, apart from Xids."""

    AER_FATAL = "aer fatal"
    AER_NONFATAL = "aer non-fatal"
    MACHINE_CHECK = "machine check"
    HUNG_TASK = "hung task"
    FILESYSTEM = "file system"
    OUT_OF_MEMORY = "out of memory"
    LINK_LIMITED = "link limited"
    CARRIER_LOST = "carrier lost"
    MODULE_REJECTED = "module rejected"
    SXID = "sxid"
    GPU_START = "gpu start"
    NVLINK_START = "nvlink start"
    KERNEL_FAULT = "kernel fault"
    RDMA_DEVICE = "rdma device"
    GPU_LOCKED = "gpu locked"
    NETWORK_DEVICE = "network device"
    NFS_SERVER = "nfs server"


@dataclass(frozen=True, slots=True)
class Xid:
    """One Xid. time: seconds since the epoch, None without a time stamp.

    previous: the Xid that the line names as its cause. fatal, unit, status, sub_code: values of a line of NVLink 5 (144
    to 150), None or '' for others.
    """

    number: int
    bus_id: str
    time: float | None
    text: str
    pid: str = ""
    process: str = ""
    fatal: bool | None = None
    previous: int | None = None
    unit: str = ""
    status: int | None = None
    sub_code: int | None = None


@dataclass(frozen=True, slots=True)
class LogEvent:
    """Another line that matters."""

    kind: LogKind
    time: float | None
    text: str


_XID = re.compile(r"NVRM: Xid \(((?:PCI:)?[0-9a-fA-F:.]+)\).*?: (\d{1,18})\b,? ?(.*)")
_OFF_BUS = re.compile(
    r"NVRM: (?:The NVIDIA )?GPU (?:at )?((?:PCI:)?[0-9a-fA-F:.]+?):? (?:.*)(?:GPU )?has fallen off the bus"
)
# The driver says it in three lines, of which the first names the GPU and the last what happened.
_NAMES_GPU = re.compile(r"NVRM: The NVIDIA GPU ((?:PCI:)?[0-9a-fA-F]{2,8}:[0-9a-fA-F:.]+)")
_FELL_OFF = re.compile(r"NVRM:\s+(?:has )?fallen off the bus")
_PID = re.compile(r"pid='?(\d+|<unknown>)'?")
_PROCESS = re.compile(r"name=([^,]+)")
_PREVIOUS = re.compile(r"caused by previous Xid (\d{1,4})\b")
# 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 ...): unit, its first word and its error status
_NVLINK5 = re.compile(r"\b([A-Z][A-Z0-9_]+)\s+(?:Nonf|Non-f|F)atal\b[^(]*\((0x[0-9a-fA-F]{1,8})\s+(0x[0-9a-fA-F]{1,8})")
_EVENTS = (
    (
        LogKind.GPU_START,
        re.compile(r"NVRM: .*(?:RmInitAdapter(?: failed|: Cannot|: osInitNvMapping failed)|rm_init_adapter failed"
                   r"|RmFetchGspRmImages: No firmware image found"
                   r"|request_irq\(\) failed"
                   r"|not have the necessary power cables|assigned to your NVIDIA device is invalid"
                   r"|probe routine (?:was not called|failed)|None of the NVIDIA \w[\w ]*were init"
                   r"|No NVIDIA (?:devices|graphics adapter) (?:probed|found)|already bound to|nouveau)"),
    ),
    (LogKind.GPU_LOCKED, re.compile(r"NVRM: .*watchdog: GPU is probably locked")),
    (LogKind.NVLINK_START, re.compile(r"NVRM: .*knvlink\w*PostRxDet\w*: .*[Ff]ailed")),
    (
        LogKind.KERNEL_FAULT,
        re.compile(r"BUG: (?:unable to handle|kernel NULL|Bad page|scheduling while)|kernel BUG at|\bOops\b"
                   r"|general protection fault[,:] |divide error: |Kernel panic|stack-protector: Kernel stack"),
    ),
    (
        LogKind.RDMA_DEVICE,
        re.compile(r"mlx5_core .*(?:health compromised|[Ff]atal error|[Ff]ata?l? assert|irmware (?:internal|fatal)"
                   r"|[Ee]nter(?:ing)? error state|health recovery (?:flow )?(?:failed|aborted)|device is in error"
                   r"|unrecoverable|Port module event\[error\]|insufficient power"
                   r"|High temperature on sensors|(?:init_one|load_one|function_setup).* failed)"
                   r"|mlx5_core: probe of \S+ failed"),
    ),
    (
        LogKind.AER_FATAL,
        re.compile(r"(?:Bus Error|AER):.*(?<!on-)(?<!on)[Ff]atal|DPC: (?:containment event|unmasked uncorrectable)"),
    ),
    (LogKind.AER_NONFATAL, re.compile(r"(?:Bus Error|AER):.*(?:Uncorrect|[Nn]on-?[Ff]atal|can't recover)")),
    (
        LogKind.MACHINE_CHECK,
        re.compile(r"Machine check|\[Hardware Error\]|mce: .*error|EDAC .*\b[CU]E\b", re.IGNORECASE),
    ),
    (
        LogKind.HUNG_TASK,
        re.compile(r"blocked for more than \d+ seconds|soft lockup|hard LOCKUP|rcu:? .*detected stall"
                   r"|unregister_netdevice: waiting for "),
    ),
    (
        LogKind.FILESYSTEM,
        re.compile(r"EXT4-fs error|XFS .*(?:[Cc]orrupt|[Ii]nternal error|I/O [Ee]rror|[Ss]hut ?down|shutting down)"
                   r"|[Rr]emounting filesystem read-only|BTRFS.*error|BTRFS warning.*csum failed|JBD2: .*[Ee]rror"
                   r"|(?:I/O error, dev|Buffer I/O error on dev(?:ice)?|critical medium error, dev) (?!fd|sr|loop)"
                   r"|nvme\d+: (?:controller is down|Removing after probe failure)"
                   r"|mpt\dsas_cm\d+: fault_state\(|megaraid_sas .*FW in FAULT|hpsa .*ontroller lockup"),
    ),
    # A container at its own memory limit is no fault of the machine.
    (LogKind.OUT_OF_MEMORY, re.compile(r"Out of memory: Kill|oom-kill:(?!constraint=CONSTRAINT_MEMCG)")),
    (
        LogKind.NETWORK_DEVICE,
        re.compile(r"NETDEV WATCHDOG: .*transmit queue \d+ timed out|\d: PCIe link lost|\d: tx_timeout: "),
    ),
    (LogKind.NFS_SERVER, re.compile(r"nfs: server \S+ (?:not responding|OK)")),
    (LogKind.LINK_LIMITED, re.compile(r"available PCIe bandwidth, limited by")),
    (
        LogKind.CARRIER_LOST,  # of network cards: NVLinks, PCIe slots and disks have links, too
        re.compile(r"^(?!.*(?:NVRM|nvidia|pciehp|\bata\d)).*(?:[Ll]ost carrier|[Ll]ink (?:is )?[Dd](?:own|OWN)\b)"),
    ),
    (LogKind.MODULE_REJECTED, re.compile(r"nvidia.*(?:Key was rejected|module verification failed)")),
    (LogKind.SXID, re.compile(r"SXid")),
)  # fmt: skip
_ISO = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?([+-]\d\d:?\d\d|Z)?\s")
_CTIME = re.compile(r"^\[([A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\]")
_UPTIME = re.compile(r"^\[\s*(\d+\.\d+)\]")


def line_time(line: str, boot_time: float | None) -> float | None:
    """Returns seconds since the epoch for lines of journal (short-iso), `dmesg -T`, and plain dmesg, or None.

    `dmesg -T` prints local time, which is read as UTC. The error of some hours is small enough for time windows.
    """
    if match := _ISO.match(line):
        zone = (match.group(2) or "Z").replace("Z", "+0000").replace(":", "")
        return datetime.strptime(match.group(1) + zone, "%Y-%m-%dT%H:%M:%S%z").timestamp()
    if match := _CTIME.match(line):
        return datetime.strptime(match.group(1), "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC).timestamp()
    if (match := _UPTIME.match(line)) and boot_time is not None:
        return boot_time + float(match.group(1))
    return None


def parse_xids(text: str, boot_time: float | None = None) -> tuple[Xid, ...]:
    """Returns every Xid in the order of the log. Lines about a GPU off the bus without an Xid become Xid 79."""
    found = []
    named = ""
    for line in text.splitlines():
        if "NVRM" not in line:
            continue
        if match := _XID.search(line):
            found.append(_xid(match, line, line_time(line, boot_time)))
        elif match := _OFF_BUS.search(line):
            found.append(Xid(79, normalise_bus_id(match.group(1)), line_time(line, boot_time), _message(line)))
        elif match := _NAMES_GPU.search(line):
            named = normalise_bus_id(match.group(1))
        elif named and _FELL_OFF.search(line):
            found.append(Xid(79, named, line_time(line, boot_time), _message(line)))
            named = ""
    return tuple(found)


def _xid(match: re.Match[str], line: str, time: float | None) -> Xid:
    detail = match.group(3)
    pid, process = _PID.search(detail), _PROCESS.search(detail)
    number = int(match.group(2))
    named = _PREVIOUS.search(detail)
    found = Xid(
        number,
        normalise_bus_id(match.group(1)),
        time,
        _message(line),
        pid.group(1) if pid else "",
        process.group(1) if process else "",
        previous=int(named.group(1)) if named else None,
    )
    return _nvlink5(found, detail) if 144 <= number <= 150 else found


def _nvlink5(xid: Xid, detail: str) -> Xid:
    """Returns the Xid with the values of its unit. Bits 20 to 25 of the first word are the sub-code."""
    fatal = re.search(r"non-?fatal", detail, re.IGNORECASE) is None
    if not (match := _NVLINK5.search(detail)):
        return replace(xid, fatal=fatal)
    info, status = int(match.group(2), 16), int(match.group(3), 16)
    return replace(xid, fatal=fatal, unit=match.group(1), status=status, sub_code=info >> 20 & 0x3F)


def _message(line: str) -> str:
    return line[line.find("NVRM") :][:300]


def parse_events(text: str, boot_time: float | None = None) -> tuple[LogEvent, ...]:
    """Every other line that matters, each once, under the first kind that fits."""
    found = []
    for line in text.splitlines():
        for kind, pattern in _EVENTS:
            if pattern.search(line):
                found.append(LogEvent(kind, line_time(line, boot_time), line.strip()[:300]))
                break
    return tuple(found)
