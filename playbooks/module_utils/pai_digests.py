"""Digests of files, cached until a file changes.

A machine holds some hundred megabytes of programs, and every run checks whether one of them has changed. Each write
gives a file a new ctime, even if the writer sets the times back. The cache is in /run, so corruption of the disk is
found after the next boot.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
import time
from typing import BinaryIO

REMEMBERED = "/run/pai-install/digests.json"
LARGE_BYTES = 1 << 20
# a write in the same tick of the kernel's clock as the one before gives the same times
SETTLED_S = 2.0
_ONE_AT_A_TIME = threading.Lock()


def sha256(data: bytes) -> str:
    """Hex digest."""
    return hashlib.sha256(data).hexdigest()


def file_sha256(path: str) -> str:
    """Hex digest of a file's bytes. Raises OSError."""
    with open(path, "rb") as handle:
        before = os.fstat(handle.fileno())
        # Small files are read each time: their entries would make the cache large for no gain.
        if before.st_size < LARGE_BYTES:
            return sha256(handle.read())
        seen, digest = _remembered().get(path, ("", ""))
        if seen == _identity(before):
            return digest
        digest = _digest(handle)
        # A file that was written while it was read has the digest of neither version.
        if _identity(os.fstat(handle.fileno())) == _identity(before) and _settled(before):
            _remember(path, _identity(before), digest)
        return digest


def _digest(handle: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := handle.read(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()


def _identity(info: os.stat_result) -> str:
    """Returns metadata that changes with every change of a file."""
    return f"{info.st_dev}:{info.st_ino}:{info.st_size}:{info.st_mtime_ns}:{info.st_ctime_ns}"


def _settled(info: os.stat_result) -> bool:
    return time.time() - max(info.st_mtime, info.st_ctime) > SETTLED_S


def _remembered() -> dict[str, tuple[str, str]]:
    """Returns path -> (identity, digest) of the cached files, or {} if the cache is unusable."""
    try:
        info = os.stat(os.path.dirname(REMEMBERED), follow_symlinks=False)
        # Another user's entries could hide a changed program.
        if info.st_uid != os.geteuid() or info.st_mode & 0o077:
            return {}
        with open(REMEMBERED, encoding="utf-8") as handle:
            return {str(path): (str(seen), str(digest)) for path, (seen, digest) in json.load(handle).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _remember(path: str, identity: str, digest: str) -> None:
    """Adds one file to the cache atomically. If this fails, the next run computes the digest again."""
    folder = os.path.dirname(REMEMBERED)
    # pai_facts checks roles in threads, and each of them writes the whole cache.
    with _ONE_AT_A_TIME:
        known = {**_remembered(), path: (identity, digest)}
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=folder)
            with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
                json.dump({name: entry for name, entry in known.items() if os.path.exists(name)}, handle)
            os.replace(temporary, REMEMBERED)
        except OSError:
            return
