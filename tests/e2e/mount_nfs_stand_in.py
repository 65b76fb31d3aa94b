#!/usr/bin/python3
"""STAND-IN for mount.nfs, where the kernel has no NFS client: the kubelet calls it as it calls the real one.

A FUSE file system over libnfs: `mount.nfs SERVER:PATH FOLDER [-o OPTIONS]`. For tests alone: one request at a time,
no locks, no attributes but those that the tests look at. It needs the packages python3-fusepy and libnfs14.
"""

from __future__ import annotations

import ctypes as c
import os
import stat
import sys
import time
from typing import Any

from fusepy import FUSE, FuseOSError, Operations  # type: ignore[import-not-found]

TIMEOUT_MS = 20_000
NFS = c.CDLL("libnfs.so.14")
NFS.nfs_init_context.restype = c.c_void_p
NFS.nfs_get_error.restype = c.c_char_p
NFS.nfs_readdir.restype = c.c_void_p
STAT_FIELDS = (
    *("dev", "ino", "mode", "nlink", "uid", "gid", "rdev"),
    *("size", "blksize", "blocks", "atime", "mtime", "ctime"),
)


class Stat(c.Structure):
    """libnfs's nfs_stat_64; after the fields above nanoseconds and what is used."""

    _fields_ = [*((name, c.c_uint64) for name in STAT_FIELDS), ("rest", c.c_uint64 * 4)]


class Entry(c.Structure):
    """The beginning of libnfs's nfsdirent."""

    _fields_ = [("next", c.c_void_p), ("name", c.c_char_p)]


class Share(Operations):  # type: ignore[misc]
    """One mounted export. Raises OSError where the server does not let it in."""

    def __init__(self, server: str, path: str) -> None:
        self.context = c.c_void_p(NFS.nfs_init_context())
        NFS.nfs_set_version(self.context, 4)
        NFS.nfs_set_timeout(self.context, TIMEOUT_MS)
        if NFS.nfs_mount(self.context, server.encode(), path.encode()) < 0:
            raise OSError(NFS.nfs_get_error(self.context).decode())
        self.files: dict[int, c.c_void_p] = {}

    def ask(self, name: str, *arguments: Any) -> int:
        """Calls nfs_NAME; its result. Raises FuseOSError for an error of the server's."""
        words = [word.encode() if isinstance(word, str) else word for word in arguments]
        result = int(getattr(NFS, f"nfs_{name}")(self.context, *words))
        if result < 0:
            raise FuseOSError(-result)
        return result

    def kept(self, handle: c.c_void_p) -> int:
        """The number of an open file."""
        number = max(self.files, default=0) + 1
        self.files[number] = handle
        return number

    def getattr(self, path: str, _fh: int | None = None) -> dict[str, int]:
        found = Stat()
        self.ask("lstat64", path, c.byref(found))
        return {f"st_{name}": int(getattr(found, name)) for name in STAT_FIELDS}

    def readdir(self, path: str, _fh: int) -> list[str]:
        folder, names = c.c_void_p(), []
        self.ask("opendir", path, c.byref(folder))
        while entry := NFS.nfs_readdir(self.context, folder):
            names.append(os.fsdecode(Entry.from_address(entry).name))
        NFS.nfs_closedir(self.context, folder)
        return names

    def open(self, path: str, flags: int) -> int:
        handle = c.c_void_p()
        # FUSE has decided what is appended where, and what is created
        self.ask("open", path, flags & (os.O_ACCMODE | os.O_TRUNC), c.byref(handle))
        return self.kept(handle)

    def create(self, path: str, mode: int, _fi: Any = None) -> int:
        handle = c.c_void_p()
        self.ask("create", path, os.O_RDWR | os.O_CREAT, stat.S_IMODE(mode), c.byref(handle))
        return self.kept(handle)

    def read(self, _path: str, size: int, offset: int, fh: int) -> bytes:
        room = c.create_string_buffer(size)
        count = self.ask("pread", self.files[fh], c.c_uint64(offset), c.c_uint64(size), room)
        return room.raw[:count]

    def write(self, _path: str, data: bytes, offset: int, fh: int) -> int:
        return self.ask("pwrite", self.files[fh], c.c_uint64(offset), c.c_uint64(len(data)), data)

    def fsync(self, _path: str, _datasync: int, fh: int) -> int:
        return self.ask("fsync", self.files[fh])

    def release(self, _path: str, fh: int) -> int:
        return self.ask("close", self.files.pop(fh))

    def truncate(self, path: str, length: int, _fh: int | None = None) -> int:
        return self.ask("truncate", path, c.c_uint64(length))

    def mkdir(self, path: str, mode: int) -> int:
        return self.ask("mkdir2", path, stat.S_IMODE(mode))

    def rmdir(self, path: str) -> int:
        return self.ask("rmdir", path)

    def unlink(self, path: str) -> int:
        return self.ask("unlink", path)

    def rename(self, old: str, new: str) -> int:
        return self.ask("rename", old, new)

    def chmod(self, path: str, mode: int) -> int:
        return self.ask("chmod", path, stat.S_IMODE(mode))

    def chown(self, path: str, uid: int, gid: int) -> int:
        return self.ask("chown", path, uid, gid)

    def utimens(self, path: str, times: tuple[float, float] | None = None) -> int:
        """To the second of each: what copies compare."""
        stamps = [int(stamp) for stamp in times or (time.time(),) * 2]
        return self.ask("utimes", path, (c.c_long * 4)(stamps[0], 0, stamps[1], 0))

    def statfs(self, _path: str) -> dict[str, int]:
        """Room enough."""
        blocks = 1 << 30
        return {
            "f_bsize": 4096,
            "f_frsize": 4096,
            "f_blocks": blocks,
            "f_bfree": blocks,
            "f_bavail": blocks,
            "f_namemax": 255,
        }


def main(words: list[str]) -> int:
    """Mounts; 32 as mount.nfs says it where it cannot."""
    options = words[words.index("-o") + 1].split(",") if "-o" in words else []
    places = [
        word for number, word in enumerate(words) if not word.startswith("-") and words[number - 1 : number] != ["-o"]
    ]
    server, _, path = places[0].partition(":")
    try:
        share = Share(server, path)
    except OSError as error:
        sys.stderr.write(f"mount.nfs (stand-in): {places[0]}: {error}\n")
        return 32
    FUSE(
        share,
        places[1],
        nothreads=True,
        allow_other=True,
        default_permissions=False,
        ro="ro" in options,
        fsname=places[0],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
