"""The machine itself: memory, clock, processes."""

from __future__ import annotations

from collections import Counter

from pai_install.checks.evidence import NotObservedError
from pai_install.checks.result import Result, failed, passed, skipped, unknown, warned
from pai_install.checks.verdict import Action, Verdict
from pai_install.health.evidence.parse.host import (
    ProcessLine,
    parse_ps,
    parse_swaps,
    parse_tracking,
    parse_units,
)
from pai_install.health.judge.check import machine_check
from pai_install.health.judge.view import MachineView

_KERNEL = "2"  # the parent of the threads of the kernel, whose work (a RAID check, say) is waiting for disks
_LOCAL_CLOCK = ("7F7F0101", "7F7F0100")
_TIME_UNITS = ("chrony", "chronyd", "systemd-timesyncd", "ntp", "ntpd", "ntpsec")


@machine_check(
    id="host-evidence",
    title="The evidence is complete",
    reads="the collector's own report",
    rule="FAIL when the machine cannot start a process. WARN when a part could not be read",
    source="own",
    remedy="run the health check again. Examine the machine if the result persists",
    action=Action.NONE,
)
def collector(machine: MachineView) -> Result:
    if machine.exhausted:
        message = "the machine cannot start a process: processes, memory, or open files are exhausted"
        remedy = (
            "stop the programs that exhaust them (`ps -eLf | wc -l`, /proc/sys/kernel/pid_max, dmesg), or reboot the "
            "machine"
        )
        return failed(message, machine.exhausted, "processes start", action=Action.REBOOT, remedy=remedy)
    broken = sorted(name for name in _READERS if not _works(machine, name))
    if broken:
        return warned("parts of the evidence could not be collected", ", ".join(broken), "complete")
    return passed("complete", "complete")


@machine_check(
    id="host-edac",
    title="The main memory has no errors",
    reads="/sys/devices/system/edac",
    rule="FAIL for uncorrected errors. WARN when corrected errors grow",
    source="own",
    remedy="find the module with ras-mc-ctl and replace it",
    action=Action.DRAIN,
)
def edac(machine: MachineView) -> Result:
    counts = machine.files("/sys/devices/system/edac/mc/", "files_host")
    if not counts:
        return skipped("this machine reports no memory errors (no EDAC)")
    if not all(text.strip().isdecimal() for text in counts.values()):
        return unknown("an EDAC counter is not a number")
    uncorrected = sum(int(text) for path, text in counts.items() if path.endswith("ue_count"))
    corrected = sum(int(text) for path, text in counts.items() if path.endswith("ce_count"))
    value = f"{uncorrected} uncorrected, {corrected} corrected"
    if uncorrected:
        return failed("the main memory has uncorrected errors", value, "0 uncorrected", action=Action.RMA)
    delta = machine.delta("edac", "corrected", corrected)
    if delta and delta[0] > 0:
        return warned("corrected memory errors grow", f"{value} (+{delta[0]:.0f})", "no growth")
    return passed(value, "0 uncorrected")


def _allowed(machine: MachineView) -> bool:
    try:
        return "failSwapOn: false" in machine.file("/var/lib/kubelet/config.yaml")
    except NotObservedError:
        return False


@machine_check(
    id="host-swap",
    title="Swap is off",
    reads="/proc/swaps",
    rule="FAIL when an area is active. WARN if the kubelet has failSwapOn: false. SKIP without a kubelet",
    source="AZ; the kubelet",
    remedy="run swapoff -a and remove the swap area from /etc/fstab",
)
def swap(machine: MachineView) -> Result:
    text = machine.file("/proc/swaps")
    # The kernel writes the header even without swap. A file without it was cut or is something else.
    if not text.startswith("Filename"):
        return unknown("/proc/swaps is not a table")
    if not machine.expected.node:
        return skipped("the machine is not a node and may swap")
    areas = parse_swaps(text)
    if areas and _allowed(machine):
        return warned("swap is on (allowed by failSwapOn: false)", ", ".join(areas), "none")
    if areas:
        return failed("swap is on", ", ".join(areas), "none")
    return passed("none", "none")


def _hanging(machine: MachineView, processes: tuple[ProcessLine, ...]) -> tuple[ProcessLine, ...]:
    """Those in state D or Z. With later looks, those that each look found so."""
    found = tuple(item for item in processes if item.state[0] in "DZ")
    text = machine.output("ps_again") if machine.available("ps_again") else ""
    later = parse_ps(text)
    if not later:
        return found
    looks = sum(line.split()[:1] == ["PID"] for line in text.splitlines())
    seen = Counter((item.pid, item.command) for item in later if item.state[0] in "DZ")
    return tuple(item for item in found if seen[item.pid, item.command] >= looks)


@machine_check(
    id="host-cgroups",
    title="cgroup v2 has the controllers for Kubernetes",
    reads="/sys/fs/cgroup/cgroup.controllers, /run/systemd/container",
    rule="FAIL when cpu, memory or pids is missing. WARN for cgroup v1. SKIP for it in a container",
    source="Kubernetes",
    remedy="boot with systemd.unified_cgroup_hierarchy=1",
)
def cgroups(machine: MachineView) -> Result:
    text = machine.files("/sys/fs/cgroup/", "files_host").get("/sys/fs/cgroup/cgroup.controllers")
    if text is None and machine.files("/run/systemd/", "files_host"):  # such as a machine of the lab
        return skipped("depends on the host of the container")
    if text is None:
        return warned("cgroup v1 is deprecated in Kubernetes", "v1", "v2", action=Action.CONFIG)
    missing = {"cpu", "memory", "pids"} - set(text.split())
    if missing:
        return failed("cgroup v2 lacks controllers", ", ".join(sorted(missing)), "cpu, memory, pids")
    return passed(text.strip())


@machine_check(
    id="processes-stuck",
    title="No process hangs",
    reads="ps, and three times more within 3 s if a process waits or is a zombie",
    rule="FAIL when a process hangs in the NVIDIA driver for stuck-process-seconds. WARN for other D and Z states",
    limits=("stuck-process-seconds",),
    source="PAI, GCM; OpenPAI NvidiaZombieProcess",
    remedy="stop the job. Reboot the machine if the process remains",
    action=Action.REBOOT,
)
def stuck(machine: MachineView) -> Result:
    processes = parse_ps(machine.output("ps"))
    if not processes:
        return unknown("ps shows no process")
    least = machine.limit("stuck-process-seconds")
    hanging = _hanging(machine, processes)
    driver = [item for item in hanging if item.state.startswith("D") and "nvidia" in item.command]
    if driver:
        shown = ", ".join(f"{item.command} ({item.pid}, {item.seconds} s)" for item in driver[:4])
        if any(item.seconds > least for item in driver):
            return failed("processes hang in the NVIDIA driver", shown, "none", action=Action.REBOOT)
        return warned("a process waits in the NVIDIA driver", shown, "none")
    old = [item for item in hanging if item.seconds > least and item.parent != _KERNEL]
    if old:
        shown = ", ".join(f"{item.command} ({item.pid}, {item.state}, {item.seconds} s)" for item in old[:4])
        return warned("processes are stuck or zombies", shown, "none")
    return passed("none", "none")


@machine_check(
    id="clock-synchronised",
    title="The clock is synchronised with a server",
    reads="chronyc -c tracking",
    rule=(
        "FAIL when not synchronised (WARN in the first boot-seconds), or with a local clock outside the control "
        "plane. WARN when the last comparison is old"
    ),
    limits=("boot-seconds",),
    source="own",
    remedy="restart chrony with systemctl. Check that port 123/udp of the time servers is reachable",
)
def clock_synchronised(machine: MachineView) -> Result:
    tracking = parse_tracking(machine.output("chrony_tracking"))
    if tracking is None:
        return unknown("the output of chronyc cannot be read")
    if tracking.leap.lower() == "not synchronised" and machine.young:
        return warned("the clock is not synchronised yet: the machine booted a moment ago", tracking.leap)
    if tracking.leap.lower() == "not synchronised":
        return failed("the clock is not synchronised", tracking.leap, "synchronised")
    # Without a time server, the clock of the control planes is the reference of all others.
    if tracking.reference in _LOCAL_CLOCK and not machine.expected.control_plane:
        return failed("chrony uses the local clock as its reference", "local clock", "a time server")
    age, limit = machine.collected_at - tracking.reference_time, 10 * max(tracking.interval, 64)
    if tracking.reference not in _LOCAL_CLOCK and tracking.interval > 0 and age > limit:
        return warned("the last comparison with the time server is old", f"{age:.0f} s", f"<= {limit:.0f} s")
    return passed(f"stratum {tracking.stratum}")


@machine_check(
    id="clock-offset",
    title="The clock is accurate",
    reads="chronyc -c tracking",
    rule="FAIL above clock-offset-fail-seconds. WARN above clock-offset-warn-, clock-root-distance-seconds. SKIP "
    "without a server to compare with",
    limits=("clock-offset-warn-seconds", "clock-offset-fail-seconds", "clock-root-distance-seconds"),
    source="etcd, node-exporter mixin",
    remedy="run chronyc makestep on a machine without etcd. Let chrony slew the clock of others",
)
def clock_offset(machine: MachineView) -> Result:
    tracking = parse_tracking(machine.output("chrony_tracking"))
    if tracking is None:
        return unknown("the output of chronyc cannot be read")
    if tracking.leap.lower() == "not synchronised":
        return skipped("the clock is not synchronised: see clock-synchronised")
    most, much = machine.limit("clock-offset-fail-seconds"), machine.limit("clock-offset-warn-seconds")
    offset, distance = abs(tracking.offset), machine.limit("clock-root-distance-seconds")
    value = f"offset {offset * 1000:.1f} ms, root distance {tracking.root_distance * 1000:.1f} ms"
    if offset > most:
        return failed("the clock is wrong", value, f"<= {most * 1000:.0f} ms")
    if offset > much or tracking.root_distance > distance:
        return warned("the clock is inexact", value, f"<= {much * 1000:.0f} ms, <= {distance * 1000:.0f} ms")
    return passed(value, f"<= {much * 1000:.0f} ms")


_READERS = ("disks", "files_driver", "files_host", "files_infiniband", "files_logs", "files_pci", "kernel")


@machine_check(
    id="clock-service",
    title="Exactly one program sets the clock",
    reads="systemd units",
    rule="FAIL for none or more than one",
    source="own",
    remedy="keep chrony. Disable and mask the others",
)
def one_time_service(machine: MachineView) -> Result:
    units = parse_units(machine.output("time_units", missing=Verdict.SKIP))
    running = sorted({name for name in _TIME_UNITS if name in units and units[name].active == "active"})
    # On Debian, chronyd is an alias of chrony, so one service would count twice.
    running = sorted(set(running) - ({"chronyd"} if "chrony" in running else set()))
    if len(running) > 1:
        return failed("several programs set the clock", ", ".join(running), "one")
    if not running:
        return failed("no program sets the clock", "none", "chrony")
    return passed(running[0])


def _works(machine: MachineView, name: str) -> bool:
    try:
        machine.fact(name)
    except NotObservedError:
        return False
    return True
