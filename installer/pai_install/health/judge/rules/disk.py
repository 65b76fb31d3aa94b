"""Disks and their file systems."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pai_install.checks.evidence import NotObservedError
from pai_install.checks.result import Result, failed, passed, skipped, unknown, warned
from pai_install.checks.verdict import Action, Verdict
from pai_install.health.evidence.parse.host import Mount, parse_json_object, parse_mounts
from pai_install.health.evidence.parse.kernel_log import LogKind
from pai_install.health.judge.check import machine_check
from pai_install.health.judge.view import MachineView
from pai_install.kube.objects import child

_REAL = {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "overlay"}
# Where a system that works writes; data sets, snaps and volumes of pods may be read-only on purpose.
_WRITTEN = {"/", "/home", "/tmp", "/var", "/var/lib", "/var/log", "/var/tmp"}  # noqa: S108 - mount points, not files
_WRITTEN |= {f"/var/lib/{name}" for name in ("containerd", "docker", "etcd", "kubelet")}


@machine_check(
    id="disk-space",
    title="Disks have free space",
    reads="statvfs of /, /var, kubelet, containerd and Docker folders",
    rule="FAIL at disk-used-fail-percent or under disk-free-fail-mib. WARN at disk-used-warn-percent",
    limits=("disk-used-warn-percent", "disk-used-fail-percent", "disk-free-fail-mib"),
    source="GPUD, NHC; OpenPAI NodeFilesystemUsage",
    remedy="delete images and logs: docker image prune, journalctl --vacuum-size=1G",
)
def disk_space(machine: MachineView) -> Iterator[Result]:
    disks = machine.fact("disks")
    if not isinstance(disks, dict) or not disks:
        yield unknown("no mount was measured")
        return
    seen = set()
    for mount, numbers in sorted(disks.items(), key=lambda item: len(item[0])):
        total, free, inodes, inodes_free = (float(number) for number in numbers)
        if (total, free) in seen:  # the same file system under another path
            continue
        seen.add((total, free))
        yield _space_of(machine, mount, total, free, inodes, inodes_free)


def _space_of(machine: MachineView, mount: str, total: float, free: float, inodes: float, inodes_free: float) -> Result:
    if total <= 0:
        return unknown("the size is not known", device=mount)
    used = max(100 * (1 - free / total), 100 * (1 - inodes_free / inodes) if inodes > 0 else 0)
    most, much = machine.limit("disk-used-fail-percent"), machine.limit("disk-used-warn-percent")
    value, expected = f"{used:.0f} % used, {free / 2**20:.0f} MiB free", f"< {most:.0f} %"
    if used >= most or free < machine.limit("disk-free-fail-mib") * 2**20:
        return failed("the disk is nearly full: the kubelet will evict pods", value, expected, device=mount)
    if used >= much:
        return warned("the disk is filling up", value, f"< {much:.0f} %", device=mount)
    return passed(value, expected, device=mount)


@machine_check(
    id="disk-read-only",
    title="No file system turned read-only",
    reads="/proc/mounts, kernel log",
    rule="FAIL for a system file system, one with errors=remount-ro, or one in the kernel log. Others may be "
    "read-only on purpose",
    source="NPD",
    remedy="save the data, check the disk, repair or replace it",
    action=Action.DRAIN,
)
def read_only(machine: MachineView) -> Result:
    mounts = parse_mounts(machine.file("/proc/mounts"))
    if not mounts:
        return unknown("/proc/mounts is empty")
    frozen = _remounted(machine)
    bad = [item.path for item in mounts if item.read_only and item.filesystem in _REAL and _must_write(item, frozen)]
    if bad:
        return failed("file systems are mounted read-only: " + ", ".join(bad[:4]), ", ".join(bad[:4]), "writable")
    return passed("none", "none")


def _remounted(machine: MachineView) -> str:
    """Returns the kernel's message about remounting a file system read-only, or '' if there is none or no log."""
    try:
        events = machine.events(LogKind.FILESYSTEM)
    except NotObservedError:
        return ""
    return "\n".join(event.text for event in events if "read-only" in event.text)


def _must_write(mount: Mount, frozen: str) -> bool:
    """Whether a read-only mount is a fault: the system writes there, or an error made it so. Others were meant."""
    disk = mount.device.rpartition("/")[2]
    return (
        mount.path in _WRITTEN
        or "errors=remount-ro" in mount.options
        or re.search(rf"\b{re.escape(disk)}\b", frozen) is not None
    )


@machine_check(
    id="disk-smart",
    title="Disks report that they are healthy",
    reads="smartctl -H",
    rule="FAIL when a disk reports failure. UNKNOWN without a report. SKIP without SMART",
    source="own",
    remedy="replace the disk",
    action=Action.RMA,
)
def smart(machine: MachineView) -> Iterator[Result]:
    scan = machine.output("smart_scan", missing=Verdict.SKIP)
    disks = [line.split()[0] for line in scan.splitlines() if line.startswith("/dev/")]
    if not disks:
        yield skipped("smartctl finds no disk")
    for disk in disks[:24]:
        result = machine.result(f"smart:{disk}")
        report = parse_json_object(result.stdout) if result else {}
        good = child(report, "smart_status").get("passed")
        if good is False:
            yield failed("the disk reports that it is failing", "failed", "passed", device=disk)
        elif good is True:
            yield passed("passed", "passed", device=disk)
        elif isinstance(report, dict) and _no_smart(report):
            yield skipped("the disk has no SMART: it is virtual, or behind a RAID controller", device=disk)
        else:
            yield unknown("the disk reports no health", device=disk)


def _no_smart(report: dict[str, Any]) -> bool:
    """Whether smartctl reached the disk and found that there is nothing to ask."""
    parts = {name: report.get(name) for name in ("smart_support", "device", "smartctl")}
    support, device, tool = (part if isinstance(part, dict) else {} for part in parts.values())
    if support.get("available") is False:
        return True
    # smartctl sets bit 2 if a SMART command fails, as on virtual disks.
    return device.get("type") == "scsi" and tool.get("exit_status") in (0, 4)


@machine_check(
    id="disk-raid",
    title="Software RAID is complete",
    reads="/proc/mdstat",
    rule="FAIL when a disk of an array is missing",
    source="own",
    remedy="replace the disk and rebuild the array",
    action=Action.RMA,
)
def raid(machine: MachineView) -> Result:
    text = machine.file("/proc/mdstat", missing=Verdict.SKIP)
    if "blocks" not in text:
        return skipped("no software RAID")
    # mdstat shows a missing disk as an underscore, for example [U_].
    degraded = [line.strip() for line in text.splitlines() if "_" in line.rpartition("[")[2] and "[" in line]
    if degraded:
        return failed("a disk of a RAID array is missing", degraded[0], "complete")
    return passed("complete", "complete")
