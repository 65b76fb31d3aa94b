"""Project quotas of xfs and ext4: disk space limits of folders.

Both support the same system calls (linux/fs.h, linux/dqblk_xfs.h), so no tools are needed. FS_IOC_FSSETXATTR gives a
folder a project, which new files in it inherit. quotactl_fd (Linux 5.14) gives a project its limit. The limit comes
last: a folder is done if its project has a limit.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

# ours begin here: other programs count theirs from small numbers
FIRST_PROJECT = 0x70610000
NONE_KEPT = (
    "{path} is on a file system that keeps no project quotas: mount it with the option prjquota (ext4 needs two "
    "features before: umount, then tune2fs -O project,quota -Q prjquota DEVICE), or take storage-manager.quotas away"
)
# file systems keep limits in blocks of their own, of 64 KiB at most
_GRAIN = 64 << 10
_SECTOR = 512
_QUOTACTL_FD, _OF_PROJECTS = 443, 2
_GET_QUOTA, _SET_LIMITS, _GET_STATE = 0x5803, 0x5804, 0x5805
# struct fs_disk_quota: version, flags, fields, project, hard and soft limit in sectors; the rest is not ours
_LIMITS = struct.Struct("=bbHIQQ")
_QUOTA_SIZE = 112
_VERSION, _PROJECT_FLAG, _SOFT_AND_HARD = 1, 1 << 1, 1 << 2 | 1 << 3
# struct fs_quota_stat: counted and enforced
_STATE_FLAGS, _STATE_SIZE = struct.Struct("=2xH"), 80
_KEPT = 1 << 4 | 1 << 5
# struct fsxattr: flags, extent size, extents, project, cow extent size
_ATTRIBUTES = struct.Struct("=5I8x")
_GET_ATTRIBUTES, _SET_ATTRIBUTES = 0x801C581F, 0x401C5820
_INHERITED = 0x200


class Folder(NamedTuple):
    """A folder, its project and limit as they are (0: none of its own), and the limit that it shall have."""

    path: str
    project: int
    limit: int
    wanted: int


class Step(NamedTuple):
    """A change of a folder. joins: first give the project to all its contents."""

    path: str
    project: int
    limit: int
    joins: bool


def missing(folders: Iterable[Folder]) -> list[Step]:
    """Returns the pending steps in order. A project of two folders belongs to the first one."""
    seen = list(folders)
    taken = {folder.project for folder in seen}
    owned: set[int] = set()
    steps = []
    for folder in seen:
        own = folder.project not in owned and folder.project
        owned.add(folder.project)
        limit = folder.limit if own else 0
        if folder.wanted == limit or (not folder.wanted and folder.project < FIRST_PROJECT):
            continue  # a limit of the admin's own stays where the site says nothing
        # A number in use would put two folders under one limit.
        number = own or max(FIRST_PROJECT, *taken) + 1
        taken.add(number)
        steps.append(Step(folder.path, number, folder.wanted, joins=not limit))
    return steps


def looked_at(path: str, size: int, each: bool) -> list[Folder]:
    """Returns a folder with its desired limit, or with `each` one entry per subfolder. Raises OSError."""
    if not os.path.isdir(path):
        return []  # not made yet
    # A link could lead a limit to a folder outside of the storage.
    names = sorted(entry.name for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False)) if each else [""]
    return [_folder(os.path.join(path, name).rstrip("/"), rounded(size)) for name in names]


def rounded(size: int) -> int:
    """A size as every file system keeps it."""
    # A limit that the file system rounds by itself would look like drift in every run.
    return -(-size // _GRAIN) * _GRAIN


def problem(item: dict[str, Any]) -> str:
    """Returns why a `quota` expectation (path, size, each) is violated, or ""."""
    if not kept(item["path"]):
        return NONE_KEPT.format(path=item["path"])
    steps = missing(looked_at(item["path"], item["size"], item["each"]))
    more = f" and {len(steps) - 1} more" if len(steps) > 1 else ""
    return f"{steps[0].path}{more} without the quota of {item['size']} bytes" if steps else ""


def take(step: Step) -> None:
    """Does one step. Raises OSError."""
    with _opened(step.path) as folder:
        if step.joins:
            # the number may be that of a folder that was deleted; its limit would say that this one is done
            _set_limit(folder, step.project, 0)
            _join(step.path, step.project)
        _set_limit(folder, step.project, step.limit)


def kept(path: str) -> bool:
    """Whether the file system of a folder, or of the nearest one above that exists, counts projects and limits them."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    answer = ctypes.create_string_buffer(_STATE_SIZE)
    try:
        with _opened(path) as folder:
            _quotactl(folder, _GET_STATE, 0, answer)
    except OSError:
        return False  # no quotas are on, or the kernel or the file system knows none
    (flags,) = _STATE_FLAGS.unpack_from(answer)
    return bool(flags & _KEPT == _KEPT)


def _folder(path: str, wanted: int) -> Folder:
    with _opened(path) as folder, _opened(os.path.dirname(path)) as above:
        number = _project(folder)
        # one that it has from the folder above is not its own
        own = number if number != _project(above) else 0
        return Folder(path, own, _limit(folder, own) if own else 0, wanted)


@contextmanager
def _opened(path: str, folder: int | None = None) -> Iterator[int]:
    """Yields a file descriptor. Symbolic links are not followed."""
    # Users own the files below. O_NOFOLLOW stops links to other files, and O_NONBLOCK stops a FIFO from blocking root.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _join(path: str, number: int) -> None:
    """Gives a folder and its contents a project. Files that others create meanwhile inherit it."""
    with _opened(path) as top:
        device = os.fstat(top).st_dev
        # The folder comes first: what users create from now on inherits the project, so the walk misses nothing.
        _set_project(top, number)
    for _path, folders, files, folder in os.fwalk(path):
        folders[:] = [name for name in folders if _joined(folder, name, number, device)]
        for name in files:
            _joined(folder, name, number, device)


def _joined(folder: int, name: str, number: int, device: int) -> bool:
    """Gives the project to a file or folder. Returns whether it is one, on this file system."""
    try:
        seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
        # Another file system has projects of its own, and devices and sockets have none.
        if seen.st_dev != device or not (stat.S_ISDIR(seen.st_mode) or stat.S_ISREG(seen.st_mode)):
            return False
        with _opened(name, folder) as found:
            _set_project(found, number)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):  # gone, or something else by now
            return False
        raise
    return True


def _attributes(descriptor: int) -> tuple[int, ...]:
    return _ATTRIBUTES.unpack(fcntl.ioctl(descriptor, _GET_ATTRIBUTES, bytes(_ATTRIBUTES.size)))


def _project(descriptor: int) -> int:
    try:
        return _attributes(descriptor)[3]
    except OSError as error:
        if error.errno in (errno.ENOTTY, errno.EOPNOTSUPP):  # a file system without projects
            return 0
        raise


def _set_project(descriptor: int, number: int) -> None:
    flags, extent, extents, there, cow = _attributes(descriptor)
    inherited = _INHERITED if stat.S_ISDIR(os.fstat(descriptor).st_mode) else 0
    if (there, flags & inherited) != (number, inherited):
        # The call sets all fields at once. The others go back as they were read.
        words = _ATTRIBUTES.pack(flags | inherited, extent, extents, number, cow)
        fcntl.ioctl(descriptor, _SET_ATTRIBUTES, words)


def _limit(descriptor: int, number: int) -> int:
    """Returns the limit in bytes. 0: unlimited."""
    answer = ctypes.create_string_buffer(_QUOTA_SIZE)
    try:
        _quotactl(descriptor, _GET_QUOTA, number, answer)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ESRCH, errno.ENOSYS):  # nothing is counted for it, or for any
            return 0
        raise
    return int(_LIMITS.unpack_from(answer)[4]) * _SECTOR


def _set_limit(descriptor: int, number: int, size: int) -> None:
    question = ctypes.create_string_buffer(_QUOTA_SIZE)
    # The soft limit is 0, so no grace period runs. Only the hard limit counts.
    _LIMITS.pack_into(question, 0, _VERSION, _PROJECT_FLAG, _SOFT_AND_HARD, number, size // _SECTOR, 0)
    _quotactl(descriptor, _SET_LIMITS, number, question)


def _quotactl(descriptor: int, command: int, number: int, buffer: ctypes.Array[ctypes.c_char]) -> None:
    # Old versions of glibc have no function for quotactl_fd, so this is the bare system call.
    libc = ctypes.CDLL(None, use_errno=True)
    words = (_QUOTACTL_FD, descriptor, command << 8 | _OF_PROJECTS, number)
    if libc.syscall(*(ctypes.c_long(word) for word in words), buffer) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
