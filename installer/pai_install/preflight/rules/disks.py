"""The disks for images, containers and etcd: space, inodes, file systems, speed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pai_install.checks.result import Result, failed, passed, skipped, warned
from pai_install.documents.quantity import QuantityError, parse_bytes
from pai_install.preflight import needs
from pai_install.preflight.evidence import FileSystem
from pai_install.preflight.model import Case, machine_check, size_text
from pai_install.site.settings import CONTAINERD_ROOT

# what the kubelet evicts pods for when nothing else is said
_EVICTION = {
    "nodefs.available": "10%",
    "imagefs.available": "15%",
    "nodefs.inodesFree": "5%",
    "imagefs.inodesFree": "5%",
}
_NO_DOCKER_ROOT = ("overlay", "nfs", "nfs4", "cifs", "tmpfs", "fuse", "9p")


@dataclass(frozen=True, slots=True)
class _Disk:
    """The paths that share a file system. least: minimum of free bytes. enough: recommended free bytes."""

    mount: FileSystem
    paths: tuple[str, ...]
    least: int
    enough: int

    @property
    def name(self) -> str:
        """The mount point, and the paths that it will hold, where these differ."""
        others = [path for path in self.paths if path != self.mount.mount_point]
        return f"{self.mount.mount_point} (with {', '.join(others)})" if others else self.mount.mount_point


@machine_check(
    id="disk-space",
    title="Enough free space for components, images, pods, and etcd",
    reads="mounts: free space below each path of the cluster",
    rule="FAIL below the need of an installation or the kubelet's eviction threshold. WARN below the need of images",
    source="own; kubelet (evictionHard)",
    remedy="free disk space, or set folders on a larger disk: containerd_data_root, docker_data_root",
)
def space(case: Case) -> Result | None:
    """Checks free space for an installation and for images, above the kubelet's eviction thresholds."""
    disks = _disks(case)
    full = [text for disk in disks if (text := _too_full(case, disk))]
    if full:
        return failed("too little free disk space", value="; ".join(full))
    shown = "; ".join(f"{disk.name}: {size_text(disk.mount.free_bytes)} free" for disk in disks)
    tight = [disk for disk in disks if disk.mount.free_bytes < disk.enough]
    # An installed machine has used the room already, and a container shows the disk of its host.
    if tight and not case.evidence.installed and not case.evidence.container:
        expected = "; ".join(f"{disk.name}: {size_text(disk.enough)}" for disk in tight)
        remedy = "use a larger disk before you run jobs with large images"
        return warned(
            "enough disk space for the installation, but little for images",
            value=shown,
            expected=expected,
            remedy=remedy,
        )
    return passed(shown, message="enough free disk space")


def _too_full(case: Case, disk: _Disk) -> str:
    least = 0 if case.evidence.installed else disk.least  # an installed machine has used it
    evicts = max(_limit(case, signal, disk.mount.total_bytes) for signal in _signals(case, disk.paths, "available"))
    needed = max(least, evicts)
    if disk.mount.free_bytes >= needed:
        return ""
    why = " (below this the kubelet evicts pods)" if evicts == needed else ""
    return f"{disk.name}: {size_text(disk.mount.free_bytes)} free, {size_text(needed)} needed{why}"


@machine_check(
    id="inodes",
    title="More free inodes than the kubelet's eviction threshold",
    reads="mounts: free inodes",
    rule="FAIL at or below the kubelet's threshold",
    source="kubelet (evictionHard)",
    remedy="remove small files (`du --inodes -x / | sort -n | tail`), or use a file system with more inodes",
)
def inodes(case: Case) -> Result | None:
    """Checks free inodes, above the kubelet's eviction thresholds."""
    few = []
    for disk in _disks(case):
        total, free = disk.mount.inodes, disk.mount.inodes_free
        limit = max(_limit(case, signal, total) for signal in _signals(case, disk.paths, "inodesFree"))
        if total and free <= limit:
            few.append(f"{disk.name}: {free} of {total} free, more than {limit} needed")
    if not few:
        return passed(message="enough free inodes")
    return failed("too few free inodes", value="; ".join(few), expected="more than 5 %")


@machine_check(
    id="file-systems",
    title="File systems below containers are local and writable",
    reads="mounts: type and options",
    rule="FAIL for read-only, noexec, or a type that cannot hold container layers",
    source="own; containerd",
    remedy=(
        "mount a local, writable ext4 or xfs file system without noexec. Check `dmesg` for the cause of read-only "
        "mounts"
    ),
)
def filesystems(case: Case) -> Result | None:
    """File systems that can be written to, run programs and hold containers."""
    problems = []
    roots = (str(case.site.settings.docker_data_root), _images(case))
    for mount in case.evidence.mounts:
        if mount.read_only:
            problems.append(f"{mount.mount_point} is mounted read-only")
        # Nothing runs from these two folders: one holds etcd's data, and the other the files of jobs.
        if mount.noexec and mount.path not in ("/var/lib/etcd", case.site.services.file_server.localpath):
            problems.append(f"{mount.mount_point} is mounted noexec")
        if mount.path in roots and mount.filesystem.startswith(_NO_DOCKER_ROOT):
            problems.append(f"{mount.path} is on {mount.filesystem}, which cannot hold container layers")
    if not problems:
        return passed(message="the file systems can hold containers")
    unique = list(dict.fromkeys(problems))
    return failed(unique[0], value="; ".join(unique), expected="a writable local file system")


@machine_check(
    id="etcd-disk",
    title="99 % of small synchronous writes on etcd's disk take at most 10 ms",
    reads="etcd_disk: up to 200 synchronous writes of 2300 bytes on a control plane",
    rule="WARN when the 99th percentile is above etcd-write-p99-ms. FAIL when the median is above etcd-write-"
    "median-ms, too",
    limits=(
        "etcd-write-p99-ms",
        "etcd-write-median-ms",
    ),
    source="etcd",
    remedy="move /var/lib/etcd to a dedicated local SSD or NVMe",
)
def etcd_disk(case: Case) -> Result | None:
    """etcd's disk confirms small writes quickly."""
    if not case.machine.control_plane:
        return None
    seen = case.evidence.etcd_disk
    if not seen.samples:
        return skipped(f"{seen.folder} cannot be measured without a change to the disk")
    value = f"median {seen.median_ms:g} ms, 99 % within {seen.p99_ms:g} ms, {seen.samples} writes"
    slow = case.limit("etcd-write-p99-ms")
    if seen.p99_ms <= slow:
        return passed(value, message="the disk is fast enough for etcd")
    expected = f"99 % within {slow:g} ms"
    if seen.median_ms > case.limit("etcd-write-median-ms"):
        return failed("the disk is too slow for etcd: leader elections would repeat", value, expected)
    return warned("the disk is slow for etcd", value, expected)


def _disks(case: Case) -> list[_Disk]:
    wanted = needs.space(case.site, case.machine)
    groups: dict[str, list[FileSystem]] = {}
    for mount in case.evidence.mounts:
        # Folders on one file system share its free space, so what they need adds up.
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


def _images(case: Case) -> str:
    """The folder of containerd's images, which the kubelet watches."""
    return case.site.settings.containerd_data_root or CONTAINERD_ROOT


def _signals(case: Case, paths: Iterable[str], what: str) -> list[str]:
    images = _images(case)
    kinds = {"imagefs" if path == images else "nodefs" for path in paths if path in (images, "/var/lib/kubelet")}
    return [f"{kind}.{what}" for kind in kinds] or ["none"]


def _limit(case: Case, signal: str, total: int) -> int:
    """Returns the kubelet's threshold in bytes or inodes, or 0 for a signal without eviction."""
    given = case.site.settings.kubelet_config.get("evictionHard")
    # The kubelet takes a given evictionHard as a whole. Signals that it does not name have no threshold then.
    text = str((given if isinstance(given, dict) else _EVICTION).get(signal, "0"))
    try:
        return int(total * float(text[:-1]) / 100) if text.endswith("%") else parse_bytes(text)
    except (QuantityError, ValueError):  # the kubelet will say so
        return 0
