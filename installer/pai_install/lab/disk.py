"""A machine's disk: a file system of its own, so that it has a size, and can be full without filling the box."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

from pai_install.lab.names import MachineNames
from pai_install.system.proc import run

GIB = 1 << 30
SIZE_BYTES = 32 * GIB  # sparse: only what is written takes space on the box


def is_mounted(path: Path, mounts: str | None = None) -> bool:
    """Returns whether `path` is a mount point. mounts: content of /proc/self/mounts."""
    text = Path("/proc/self/mounts").read_text() if mounts is None else mounts
    return any(line.split()[1] == str(path) for line in text.splitlines() if " " in line)


def ensure_disk(names: MachineNames) -> bool:
    """Mounts the machine's disk, and creates it if it is missing. Returns False if the host supports only a plain
    folder.
    """
    if is_mounted(names.disk):
        return True
    is_new = not names.disk.exists()
    names.disk.mkdir(parents=True, exist_ok=True)
    if is_new and not _make_image(names.image):
        return False
    if not names.image.exists():
        return False
    if run(["mount", "-o", "loop,discard,noatime", names.image, names.disk], check=False).ok:
        return True
    if not is_new:
        run(["mount", "-o", "loop,discard,noatime", names.image, names.disk])
    names.image.unlink()  # a box without loop devices
    return False


def _make_image(image: Path) -> bool:
    with image.open("wb") as handle:
        handle.truncate(SIZE_BYTES)
    # no journal: the disk lives and dies with the box's running kernel
    options = ["-q", "-F", "-m", "0", "-O", "^has_journal", "-E", "lazy_itable_init=1,nodiscard"]
    made = run(["mkfs.ext4", *options, image], check=False).ok
    if not made:
        image.unlink()
    return made


def unmount(path: Path) -> bool:
    """Unmounts `path`. Returns False if it was not mounted. Raises PaiError if it is in use."""
    if not is_mounted(path):
        return False
    for _ in range(40):  # the kernel may need a moment to let go after the last process
        if run(["umount", path], check=False).ok:
            return True
        time.sleep(0.1)
    return run(["umount", path]).ok


def filler(names: MachineNames) -> Path:
    """Returns the file that fills a disk. Machines do not see it."""
    return names.disk / "filler"


def fill(names: MachineNames) -> bool:
    """Fills the disk. Returns False if it has no size limit."""
    if not is_mounted(names.disk):
        return False
    offset = 0
    with filler(names).open("wb") as handle:
        # allocated, not written: the box's own disk does not grow; small units last, until nothing fits
        for unit in (GIB, 1 << 20, 4096):
            while _allocated(handle.fileno(), offset, unit):
                offset += unit
    return True


def _allocated(descriptor: int, offset: int, size: int) -> bool:
    try:
        os.posix_fallocate(descriptor, offset, size)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False
    return True
