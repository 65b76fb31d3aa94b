"""Where images, containers and etcd will live: space, inodes, file systems, speed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pai_install.preflight import needs
from pai_install.preflight.evidence import Mount
from pai_install.preflight.model import Case, Check, Ruling, failed, had, passed, size_text, skipped, warned
from pai_install.site.quantity import QuantityError, parse_bytes

# what the kubelet evicts pods for when nothing else is said
_EVICTION = {
    "nodefs.available": "10%",
    "imagefs.available": "15%",
    "nodefs.inodesFree": "5%",
    "imagefs.inodesFree": "5%",
}
_IMAGES = "/var/lib/containerd"
_NO_DOCKER_ROOT = ("overlay", "nfs", "nfs4", "cifs", "tmpfs", "fuse", "9p")
_SLOW_MS, _TOO_SLOW_MS = 10.0, 100.0  # etcd's own advice for its 99th percentile; its heartbeat


@dataclass(frozen=True, slots=True)
class _Disk:
    """The paths that share a file system. least: bytes that must be free; enough: that should be."""

    mount: Mount
    paths: tuple[str, ...]
    least: int
    enough: int

    @property
    def name(self) -> str:
        """The mount point, and what will be there, as far as that is not the same."""
        others = [path for path in self.paths if path != self.mount.mount_point]
        return f"{self.mount.mount_point} (with {', '.join(others)})" if others else self.mount.mount_point


def space(case: Case) -> Ruling | None:
    """Free space for an installation and for images, more than what makes the kubelet evict pods."""
    disks = _disks(case)
    full = [text for disk in disks if (text := _too_full(case, disk))]
    if full:
        remedy = "free space there, or move docker_data_root (or a mount of /var/lib) to a larger disk"
        return failed("too little free disk space", value="; ".join(full), remedy=remedy)
    shown = "; ".join(f"{disk.name}: {size_text(disk.mount.free_bytes)} free" for disk in disks)
    tight = [disk for disk in disks if disk.mount.free_bytes < disk.enough]
    if tight and not case.evidence.ours and not case.evidence.container:
        expected = "; ".join(f"{disk.name}: {size_text(disk.enough)}" for disk in tight)
        remedy = "use a larger disk before jobs with large images come"
        return warned("enough disk space to install, little for images", value=shown, expected=expected, remedy=remedy)
    return passed("enough free disk space", shown)


def _too_full(case: Case, disk: _Disk) -> str:
    least = 0 if case.evidence.ours else disk.least  # an installed machine has used it
    evicts = max(_limit(case, signal, disk.mount.total_bytes) for signal in _signals(disk.paths, "available"))
    needed = max(least, evicts)
    if disk.mount.free_bytes >= needed:
        return ""
    why = " (below this the kubelet evicts pods)" if evicts == needed else ""
    return f"{disk.name}: {size_text(disk.mount.free_bytes)} free, {size_text(needed)} needed{why}"


def inodes(case: Case) -> Ruling | None:
    """Free inodes, more than what makes the kubelet evict pods."""
    few = []
    for disk in _disks(case):
        total, free = disk.mount.inodes, disk.mount.inodes_free
        limit = max(_limit(case, signal, total) for signal in _signals(disk.paths, "inodesFree"))
        if total and free <= limit:
            few.append(f"{disk.name}: {free} of {total} free, more than {limit} needed")
    if not few:
        return passed("enough free inodes")
    remedy = "remove many small files there (`du --inodes -x / | sort -n | tail`), or use a file system with more"
    return failed("too few free inodes", value="; ".join(few), expected="more than 5 %", remedy=remedy)


def filesystems(case: Case) -> Ruling | None:
    """File systems that can be written to, run programs and hold containers."""
    problems = []
    docker = str(case.site.settings.docker_data_root)
    for mount in had(case.evidence.mounts, "mounts"):
        if mount.read_only:
            problems.append(f"{mount.mount_point} is mounted read-only")
        if mount.noexec and mount.path != "/var/lib/etcd":
            problems.append(f"{mount.mount_point} is mounted noexec")
        if mount.path in (docker, _IMAGES) and mount.filesystem.startswith(_NO_DOCKER_ROOT):
            problems.append(f"{mount.path} is on {mount.filesystem}, which cannot hold container layers")
    if not problems:
        return passed("the file systems can hold containers")
    unique = list(dict.fromkeys(problems))
    remedy = "mount a local ext4 or xfs file system there, writable, without noexec; `dmesg` says why one is read-only"
    return failed(unique[0], value="; ".join(unique), expected="a writable local file system", remedy=remedy)


def etcd_disk(case: Case) -> Ruling | None:
    """etcd's disk confirms small writes quickly."""
    if not case.machine.control_plane:
        return None
    seen = had(case.evidence.etcd_disk, "etcd_disk")
    if not seen.samples:
        return skipped(f"{seen.folder} cannot be measured without leaving a trace")
    value = f"median {seen.median_ms:g} ms, 99 % within {seen.p99_ms:g} ms, {seen.samples} writes"
    if seen.p99_ms <= _SLOW_MS:
        return passed("the disk is quick enough for etcd", value)
    words = {
        "value": value,
        "expected": f"99 % within {_SLOW_MS:g} ms",
        "remedy": "put /var/lib/etcd on a local SSD or NVMe that nothing else writes to",
    }
    if seen.median_ms > _TOO_SLOW_MS:
        return failed("the disk is too slow for etcd: it would lose its leader again and again", **words)
    return warned("the disk is slow for etcd", **words)


def _disks(case: Case) -> list[_Disk]:
    wanted = needs.space(case.site, case.machine)
    groups: dict[str, list[Mount]] = {}
    for mount in had(case.evidence.mounts, "mounts"):
        groups.setdefault(mount.device or mount.mount_point, []).append(mount)
    return [
        _Disk(
            mounts[0],
            tuple(mount.path for mount in mounts),
            sum(wanted.get(mount.path, (0, 0))[0] for mount in mounts),
            sum(wanted.get(mount.path, (0, 0))[1] for mount in mounts),
        )
        for mounts in groups.values()
    ]


def _signals(paths: Iterable[str], what: str) -> list[str]:
    kinds = {"imagefs" if path == _IMAGES else "nodefs" for path in paths if path in (_IMAGES, "/var/lib/kubelet")}
    return [f"{kind}.{what}" for kind in kinds] or ["none"]


def _limit(case: Case, signal: str, total: int) -> int:
    """The threshold of the kubelet in bytes or inodes; 0 for a signal that evicts nothing."""
    given = case.site.settings.kubelet_config.get("evictionHard")
    text = str((given if isinstance(given, dict) else _EVICTION).get(signal, "0"))
    try:
        return int(total * float(text[:-1]) / 100) if text.endswith("%") else parse_bytes(text)
    except (QuantityError, ValueError):  # the kubelet will say so
        return 0


CHECKS = (
    Check("disk-space", "Free space for components, images, pods and etcd", space),
    Check("inodes", "More free inodes than what makes the kubelet evict pods", inodes),
    Check("file-systems", "Writable local file systems, not overlay or network ones, below containers", filesystems),
    Check("etcd-disk", "99 % of small synchronous writes take at most 10 ms on etcd's disk", etcd_disk),
)
