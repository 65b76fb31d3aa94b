"""NVLink, NVSwitch, the fabric manager and peer-to-peer between GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

from pai_install.checks.evidence import NotObservedError
from pai_install.checks.result import Result, failed, passed, skipped, unknown, warned
from pai_install.checks.verdict import Action, Verdict
from pai_install.health.evidence import fields
from pai_install.health.evidence.parse.host import parse_units
from pai_install.health.evidence.parse.links import (
    NvLinks,
    nvidia_gpus,
    nvswitches,
    parse_fabric_log,
    parse_nvlink_errors,
    parse_nvlink_status,
)
from pai_install.health.evidence.reading import is_nvml_error
from pai_install.health.judge.check import gpu_check, machine_check
from pai_install.health.judge.gpu_view import GpuView
from pai_install.health.judge.view import MachineView

# Of what `nvlink -e` counts, these are faults; packets, FEC corrections and symbol errors grow on healthy links.
_FAULTS = re.compile(r"replay|crc|^recovery|recovery failed", re.IGNORECASE)
# On these boards lspci shows no NVSwitch; the fabric manager, where it is installed, must run all the same.
_BOARD = re.compile(r"\bB[23]00\b")
_MANAGER = re.compile(r"nvidia-fabric-?manager(?:-\d+)?[ -](\d{3}\.\d+(?:\.\d+)?)\S*(?: [hi]i)?$")
# Cards of one machine that are on a board with NVLink: no way between two of them is a fault.
_LINKED = re.compile(r"SXM|HBM3|\bG?B[23]00\b|\bH200(?! NVL)")
_GRID = re.compile(r"^\s*GPU\d+\s")


@machine_check(
    id="nvlink-links",
    title="Every NVLink is up and has the speed of the model",
    reads="nvidia-smi nvlink -s, baseline",
    rule="FAIL for an inactive link or fewer than nvlink-count or the baseline. WARN below nvlink-speed. SKIP without "
    "NVLink, or for a single GPU with no active link",
    limits=("nvlink-count", "nvlink-speed"),
    source="NHV, recordings",
    remedy="reset all linked GPUs. If the fault persists, check the bridge or board",
    action=Action.RESET_GPU,
    gpus_only=True,
)
def links(machine: MachineView) -> Iterator[Result]:
    entries = parse_nvlink_status(machine.output("nvidia_smi_nvlink", missing=Verdict.UNKNOWN, allowed=(0, 1, 3, 255)))
    if not entries and machine.gpus and _alone(machine):
        yield skipped("one GPU without NVLinks")
    elif not entries:
        yield unknown("nvidia-smi nvlink -s shows no GPU")
    shown = {entry.uuid for entry in entries}
    by_uuid = {gpu.peek(fields.UUID).text: gpu for gpu in machine.gpus}
    for entry in entries:
        yield _links_of(entry, by_uuid.get(entry.uuid), machine)
    for uuid, gpu in by_uuid.items():
        if uuid not in shown and entries:
            yield unknown("nvidia-smi nvlink -s does not show this GPU", device=gpu.bus_id)


def _links_of(entry: NvLinks, gpu: GpuView | None, machine: MachineView) -> Result:
    device = gpu.bus_id if gpu else f"GPU {entry.index}"
    if "MIG mode" in entry.note:
        return skipped("links cannot be read in MIG mode", device=device)
    accepted = gpu.baseline.nvlinks if gpu and gpu.baseline else None
    wanted = accepted if accepted is not None else machine.optional_limit("nvlink-count", entry.name)
    active = [speed for speed in entry.speeds.values() if speed is not None]
    value = f"{len(active)} of {len(entry.speeds)} links"
    inactive = [str(link) for link, speed in entry.speeds.items() if speed is None]
    if not active and (wanted is None or (accepted is None and _alone(machine))):
        return skipped("this GPU has no NVLink to another GPU", device=device)
    if accepted is None and inactive and active:
        return failed(f"NVLinks are inactive: {', '.join(inactive)}", value, "all active", device=device)
    if wanted is not None and len(active) < wanted:
        return failed("too few NVLinks are active", value, f"{wanted:.0f} links", device=device)
    speed = machine.optional_limit("nvlink-speed", entry.name)
    slow = [number for number in active if speed is not None and number < speed * 0.99]
    if slow:
        return warned("NVLinks are slow", f"{min(slow):g} GB/s", f"{speed:g} GB/s", device=device)
    return passed(value, f"{wanted or len(active):.0f} links", device=device)


def _alone(machine: MachineView) -> bool:
    """Whether neither the layout nor the machine knows of a second GPU: a virtual machine with a part of a board."""
    on_bus = len(nvidia_gpus(machine.nvidia_pci))
    return max(len(machine.gpus), on_bus, machine.expected.count or 0) == 1


@machine_check(
    id="nvlink-errors",
    title="NVLink error counters do not grow",
    reads="nvidia-smi nvlink -e, history",
    rule="FAIL at nvlink-errors-per-minute (replay, recovery) or nvlink-crc-per-second. WARN when they are fewer than "
    "nvlink-errors-least",
    limits=("nvlink-errors-per-minute", "nvlink-errors-least", "nvlink-crc-per-second"),
    source="DCGM",
    remedy="reset all linked GPUs. If the counters still grow, check the bridge or board",
    action=Action.RESET_GPU,
    gpus_only=True,
)
def link_errors(machine: MachineView) -> Iterator[Result]:
    counters = parse_nvlink_errors(machine.output("nvidia_smi_nvlink_errors", missing=Verdict.SKIP))
    compared = bad = False
    for index, values in counters.items():
        gone = [name for name in machine.vanished(f"nvlink {index}", values) if _is_fault(name)]
        if gone:
            bad = True
            yield unknown(
                f"counters are missing since the last run: {', '.join(sorted(gone)[:4])}", device=f"GPU {index}"
            )
        for name, value in values.items():
            if not _is_fault(name):
                continue
            delta = machine.delta(f"nvlink {index}", name, value)
            compared = compared or delta is not None
            judgement = _growth(machine, name, delta, f"GPU {index}") if delta else None
            if judgement:
                bad = True
                yield judgement
    if not compared and not bad:
        yield skipped("no earlier run in this boot for comparison")
    elif not bad:
        yield passed("no growth", "no growth")


def _is_fault(name: str) -> bool:
    return _FAULTS.search(name.partition(": ")[2]) is not None


def _growth(machine: MachineView, name: str, delta: tuple[float, float], device: str) -> Result | None:
    crc = "crc" in name.lower()
    most = machine.limit("nvlink-crc-per-second") if crc else machine.limit("nvlink-errors-per-minute") / 60
    if delta[0] == 0 or delta[0] / delta[1] < most:
        return None
    verdict = warned if delta[0] < machine.limit("nvlink-errors-least") else failed
    value = f"+{delta[0]:.0f} in {delta[1]:.0f} s"
    return verdict(f"NVLink errors grow: {name}", value, f"< {most:.3g}/s", device=device)


@gpu_check(
    id="gpu-fabric",
    title="The GPU has joined the NVLink fabric",
    reads="fabric/state, fabric/status",
    rule="FAIL when not Completed and Success. WARN while In Progress in the first boot-seconds",
    limits=("boot-seconds",),
    source="NHV, NVS",
    remedy="restart nvidia-fabricmanager, then reset the GPUs",
    action=Action.DRAIN,
)
def fabric(gpu: GpuView, machine: MachineView) -> Result:
    state, status = gpu.text(fields.FABRIC_STATE).lower(), gpu.text(fields.FABRIC_STATUS).lower()
    refused = gpu.peek(fields.FABRIC_STATUS).text.lower()
    status = refused if is_nvml_error(refused) else status
    value = f"{state or '?'}, {status or '?'}"
    if not state and not status:
        return passed()
    if state == "in progress" and machine.young:
        return warned("the GPU is joining the fabric: the machine booted a moment ago", value, "completed, success")
    if state == "in progress":
        return failed("the GPU has not joined the fabric yet", value, "completed, success")
    if (state and state != "completed") or (status and status != "success"):
        return failed("the GPU is not part of the NVLink fabric", value, "completed, success")
    return passed(value, "completed, success")


@gpu_check(
    id="gpu-fabric-health",
    title="The GPU's part of the fabric is healthy",
    reads="fabric/health/summary",
    rule="FAIL when not Healthy (the state stays Completed meanwhile)",
    source="NVIDIA k8s-test-infra",
    remedy="drain the machine and find the degraded part. Reset the GPUs or repair the link",
    action=Action.DRAIN,
)
def fabric_health(gpu: GpuView, _machine: MachineView) -> Result:
    summary = gpu.text(fields.FABRIC_SUMMARY).lower()
    if summary and summary != "healthy":
        parts = [
            f"{path.rsplit('/', 1)[1]} {text}"
            for path, text in gpu.gpu.texts.items()
            if path.startswith("fabric/health/")
        ]
        return failed("the GPU's part of the fabric is not healthy", ", ".join(parts), "Healthy")
    return passed(summary, "healthy")


@machine_check(
    id="fabric-manager",
    title="The fabric manager runs on machines with NVSwitches",
    reads="lspci or /sys/bus/pci, nvidia-fabricmanager.service, its package",
    rule="FAIL when it is stopped or has another version than the driver. WARN while it starts in the first "
    "boot-seconds",
    limits=("boot-seconds",),
    source="NVS 883",
    remedy="install the fabric manager of exactly the driver's version and start it",
    gpus_only=True,
)
def manager(machine: MachineView) -> Result:
    hidden = len(machine.gpus) > 1 and any(_BOARD.search(gpu.peek(fields.PRODUCT).text) for gpu in machine.gpus)
    visible = bool(nvswitches(machine.nvidia_pci))
    unit = parse_units(machine.output("units")).get("nvidia-fabricmanager") if visible or hidden else None
    loaded = unit is not None and unit.loaded
    if not visible and not loaded:
        return skipped("no NVSwitch on the bus")
    if unit is None or not loaded:
        return failed("the fabric manager is not installed on this machine with NVSwitches", "not installed", "active")
    if unit.active == "activating" and machine.young:
        return warned("the fabric manager is starting: the machine booted a moment ago", unit.active, "active")
    if unit.active != "active":
        return failed("the fabric manager is not running", unit.active, "active")
    return _manager_version(machine) or passed(unit.active, "active")


def _manager_version(machine: MachineView) -> Result | None:
    """Returns FAIL if a fabric manager package differs in version from the driver, or None."""
    lists = [name for name in ("dpkg_nvidia", "rpm_nvidia") if machine.available(name)]
    listed = [line for name in lists for line in machine.output(name).splitlines()]
    found = {match.group(1) for line in listed if (match := _MANAGER.match(line.strip()))}
    driver = machine.smi.driver_version
    if found and driver and driver not in found:
        return failed("the fabric manager has another version than the driver", ", ".join(sorted(found)), driver)
    return None


def _zone(machine: MachineView) -> tzinfo:
    """Returns the machine's time zone, by default UTC."""
    if not machine.available("timedatectl"):
        return UTC
    match = re.search(r"^Timezone=(\S+)", machine.output("timedatectl"), re.MULTILINE)
    try:
        return ZoneInfo(match.group(1)) if match else UTC
    except (ValueError, OSError, KeyError):
        return UTC


@machine_check(
    id="fabric-manager-log",
    title="The fabric manager reports no errors",
    reads="/var/log/fabricmanager.log",
    rule=(
        "FAIL for fatal NVSwitch errors and missing GPU handles within xid-window-hours. WARN for such errors earlier "
        "in this boot and for recent non-fatal ones"
    ),
    limits=("xid-window-hours",),
    source="GPUD",
    remedy="reboot the machine. If the fault returns, replace the board",
    action=Action.REBOOT,
    gpus_only=True,
)
def manager_log(machine: MachineView) -> Result:
    try:
        text = machine.file("/var/log/fabricmanager.log", missing=Verdict.SKIP)
    except NotObservedError:
        machine.files("/var/log/", "files_logs")  # raises where the reader failed: then the log may well be there
        raise
    since = machine.boot_time
    events = parse_fabric_log(text, _zone(machine))
    errors = [error for error in events if error.time is None or since is None or error.time >= since]
    fatal = [error for error in errors if error.fatal]
    if any(machine.recent(error.time) for error in fatal):
        return failed("the fabric manager reports fatal errors", fatal[-1].text, "none")
    if fatal:
        return warned("the fabric manager reported fatal errors earlier in this boot", fatal[-1].text, "none")
    if any(machine.recent(error.time) for error in errors):
        return warned("the fabric manager reports NVSwitch errors", errors[-1].text, "none")
    return passed(f"none lately, last: {events[-1].text}" if events else "none", "none")


@machine_check(
    id="imex",
    title="IMEX runs on GB200 and GB300",
    reads="nvidia-imex.service",
    rule="WARN when it is stopped",
    source="aicr 2641",
    remedy="run systemctl start nvidia-imex, if a job needs it",
    gpus_only=True,
)
def imex(machine: MachineView) -> Result:
    if not any(re.search(r"GB[23]00", gpu.peek(fields.PRODUCT).text) for gpu in machine.gpus):
        return skipped("only GB200 and GB300 use IMEX")
    unit = parse_units(machine.output("nvidia_units")).get("nvidia-imex")
    if unit is None or not unit.loaded or unit.active != "active":
        return warned(
            "the IMEX service is not running (it may be idle between jobs)", unit.active if unit else "none", "active"
        )
    return passed(unit.active, "active")


@machine_check(
    id="gpu-peer-to-peer",
    title="GPUs have peer-to-peer access",
    reads="nvidia-smi topo -p2p n",
    rule="WARN for any status other than OK, except `not supported` between cards without NVLink",
    source="own",
    remedy="check ACS and IOMMU settings",
    gpus_only=True,
)
def peer_to_peer(machine: MachineView) -> Result:
    text = machine.output("nvidia_smi_p2p", missing=Verdict.SKIP)
    rows = [line.split() for line in text.splitlines() if _GRID.match(line) and "X" in line.split()]
    if not rows:
        return skipped("nvidia-smi shows no peer-to-peer matrix")
    if len(rows) < 2:
        return skipped("one GPU has no peer")
    fine = {"X", "OK", "NS", "CNS"}
    if machine.gpus and all(gpu.traits.consumer for gpu in machine.gpus):
        fine |= {"GNS", "TNS"}
    if machine.gpus and all(_LINKED.search(gpu.peek(fields.PRODUCT).text) for gpu in machine.gpus):
        fine -= {"NS", "CNS"}
    bad = sorted({word for row in rows for word in row[1:] if word not in fine})
    if bad:
        return warned("GPUs cannot reach each other directly", ", ".join(bad), "OK")
    return passed("OK", "OK")
