#!/usr/bin/python3 -I
"""Snapshots of etcd: created by etcdctl, verified by the hash at their end.

etcd-snapshot.py take FILE          writes a new file and prints the sha256 of its content
etcd-snapshot.py keep FOLDER MOST   adds one to a folder and deletes the oldest beyond MOST
etcd-snapshot.py copy KEPT FILE     copies one of a folder to a new file and prints the sha256 of its content
"""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
import subprocess
import sys
import time
from typing import List, Tuple

ETCDCTL = "/usr/local/bin/etcdctl"
TIMEOUT_S = 600
_HASH = 32
_SECTOR = 512


class SnapshotError(Exception):
    """There is no complete snapshot. The text says why."""


def take(path: str) -> str:
    """Writes a snapshot to a new file (0600) and returns its sha256. Raises SnapshotError and leaves no file."""
    partial = f"{path}.partial"
    try:
        # an etcd that is not there is asked for a snapshot again and again, until all the time is over
        ask("endpoint", "status", "--command-timeout=30s")
        ask("snapshot", "save", partial)
        found = verified(partial)
        os.chmod(partial, 0o600)
        with open(partial, "rb") as handle:
            os.fsync(handle.fileno())
        os.rename(partial, path)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SnapshotError(str(error)) from error
    finally:
        for left in glob.glob(glob.escape(partial) + "*"):
            os.unlink(left)
    return found


def ask(*words: str) -> None:
    """Runs etcdctl. Raises SnapshotError with the last thing that it said, and subprocess.TimeoutExpired."""
    done = subprocess.run(
        [ETCDCTL, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise SnapshotError((done.stderr.strip().splitlines() or [f"etcdctl ended with {done.returncode}"])[-1])


def verified(path: str) -> str:
    """Returns the sha256 of a snapshot's content, which the snapshot ends with. Raises SnapshotError on a
    difference.
    """
    size = os.path.getsize(path)
    if size <= _HASH or size % _SECTOR != _HASH:
        raise SnapshotError(f"{path} is no snapshot of etcd, or a part of one")
    content = hashlib.sha256()
    with open(path, "rb") as handle:
        left = size - _HASH
        while left:
            part = handle.read(min(left, 1 << 20))
            if not part:
                raise SnapshotError(f"{path} became shorter while it was read")
            content.update(part)
            left -= len(part)
        said = handle.read()
    if said != content.digest():
        raise SnapshotError(f"{path} is damaged: its content has another hash than it says")
    return content.hexdigest()


def keep(folder: str, most: int) -> Tuple[str, List[str]]:
    """Takes a snapshot named after the time, then drops the oldest beyond `most`: the new one, and those dropped."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    new = os.path.join(folder, time.strftime("etcd-%Y%m%dT%H%M%SZ.db", time.gmtime()))
    take(new)
    old = sorted(glob.glob(os.path.join(glob.escape(folder), "etcd-*.db")))[:-most]
    for path in old:
        os.unlink(path)
    return new, old


def copy(kept: str, path: str) -> str:
    """Copies a snapshot to a new file (0600) and returns its sha256. Raises SnapshotError and leaves no file."""
    if not os.path.isfile(kept):
        folder = os.path.dirname(kept)
        there = sorted(map(os.path.basename, glob.glob(os.path.join(glob.escape(folder), "etcd-*.db"))))
        raise SnapshotError(f"{kept} is not there. {folder} holds {', '.join(there) or 'none'}")
    found = verified(kept)
    with open(kept, "rb") as source, os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new:
        shutil.copyfileobj(source, new)
    return found


def main() -> int:
    """Runs the program."""
    verb, path, *rest = sys.argv[1:]
    try:
        if verb == "take":
            said = take(path)
        elif verb == "copy":
            said = copy(path, rest[0])
        else:
            new, old = keep(path, int(rest[0]))
            said = f"took {new}, {os.path.getsize(new)} bytes, verified by its hash; dropped {len(old)} older ones"
    except (SnapshotError, OSError) as error:
        sys.stderr.write(f"there is no snapshot of etcd: {error}\n")
        return 1
    sys.stdout.write(f"{said}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
