#!/usr/bin/python3
"""Deletes unused content from the folder of the Docker cache. Managed by pai-install: changes are overwritten.

The least recently used content goes first. The cache pulls deleted content again on the next request. The last use is
the access time of a file, which file systems update once a day (relatime) or never (noatime: then the oldest content
goes first). Python 3.9 with its standard library.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import glob
import json
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

CONFIGURATION = "/etc/pai-install/docker-cache/gc.json"
STATE = "/var/lib/pai-install/docker-cache-gc.json"
# of each registry, in a folder named after its upstream
CONTENT = "*/docker/registry/v2"
DAY_S = 86400
# A pull that is under way has used it just now.
GRACE_S = 600
# The registry gives up a layer that it could not write in 12 hours (cachewritetimeout).
UPLOAD_S = DAY_S


class Blob(NamedTuple):
    """One piece of content. path: its folder. size: bytes on the disk. used: when, in seconds since 1970."""

    path: str
    size: int
    used: float


class Rule(NamedTuple):
    """Limits of the content. limit: bytes of all content, 0 for any. free: free bytes of the file system.

    keep_s: content unused for these seconds is always deleted.
    """

    limit: int
    free: int
    keep_s: int


def excess(blobs: Sequence[Blob], rule: Rule, free: int) -> int:
    """Returns the bytes to delete for the limit and for the file system, which has `free` bytes. 0 or less: none."""
    over = sum(blob.size for blob in blobs) - rule.limit if rule.limit else 0
    return max(over, rule.free - free)


def unwanted(blobs: Sequence[Blob], rule: Rule, free: int, now: float) -> list[Blob]:
    """Returns the content to delete: the least recently used first, and no more than the rule requires."""
    left = excess(blobs, rule, free)
    chosen = []
    for blob in sorted(blobs, key=lambda blob: (blob.used, blob.path)):
        age = now - blob.used
        if age <= GRACE_S or (left <= 0 and age <= rule.keep_s):
            break
        chosen.append(blob)
        left -= blob.size
    return chosen


def blobs_in(folder: str) -> Iterator[Blob]:
    """The content of all registries below the folder."""
    for path in glob.iglob(f"{glob.escape(folder)}/{CONTENT}/blobs/*/*/*/data"):
        with contextlib.suppress(OSError):  # taken away meanwhile
            info = os.lstat(path)
            if stat.S_ISREG(info.st_mode):
                yield Blob(os.path.dirname(path), info.st_blocks * 512, used(info))


def used(info: os.stat_result) -> float:
    """When a file was last read or written."""
    return max(info.st_atime, info.st_mtime)


def drop(blob: Blob) -> bool:
    """Deletes a blob. Returns whether it existed and was unused since the scan. Current readers can finish."""
    path = os.path.join(blob.path, "data")
    try:
        if used(os.lstat(path)) != blob.used:
            return False
        os.unlink(path)
    except OSError:
        return False
    with contextlib.suppress(OSError):  # written again this moment
        os.rmdir(blob.path)
    return True


def left_behind(folder: str, kept: Sequence[Blob], now: float) -> Iterator[str]:
    """Folders that nothing needs: uploads that were broken off, and a registry's links to content that is gone."""
    for root in glob.iglob(f"{glob.escape(folder)}/{CONTENT}"):
        digests = {os.path.basename(blob.path) for blob in kept if blob.path.startswith(root + "/")}
        for place, names, _files in os.walk(os.path.join(root, "repositories")):
            below = [os.path.join(place, name) for name in names]
            if os.path.basename(place) == "_uploads":
                names.clear()
                yield from (path for path in below if now - changed(path) > UPLOAD_S)
            elif os.path.dirname(place).endswith(("/_layers", "/_manifests/revisions")):
                names.clear()
                gone = (path for path in below if os.path.basename(path) not in digests)
                yield from (path for path in gone if now - changed(path) > GRACE_S)


def changed(folder: str) -> float:
    """Returns the last modification of the folder or a file in it, or the current time if unreadable."""
    try:
        return max(os.lstat(path).st_mtime for path in (folder, *(entry.path for entry in os.scandir(folder))))
    except OSError:
        return time.time()


def collect(folder: str, rule: Rule, *, check: bool) -> dict[str, Any]:
    """Deletes unused content, or with `check` only counts it. Returns a report: times in seconds since 1970, bytes."""
    began = time.time()
    blobs, disk = list(blobs_in(folder)), shutil.disk_usage(folder)
    chosen = unwanted(blobs, rule, disk.free, began)
    dropped = [blob for blob in chosen if check or drop(blob)]
    gone = set(dropped)
    kept = [blob for blob in blobs if blob not in gone]
    stale = list(left_behind(folder, kept, began))
    for path in () if check else stale:
        shutil.rmtree(path, ignore_errors=True)
    freed = sum(blob.size for blob in dropped)
    before = sum(blob.size for blob in blobs)
    free = disk.free + freed
    return {
        "at": round(began),
        "check": check,
        "folder": folder,
        "before": before,
        "after": before - freed,
        "limit": rule.limit,
        "free": free,
        "keep_free": rule.free,
        "short": max(0, excess(kept, rule, free)),
        "dropped": {"count": len(dropped), "bytes": freed},
        "left_behind": len(stale),
        "oldest_use_kept": round(min((blob.used for blob in kept), default=began)),
        "seconds": round(time.time() - began, 3),
    }


def told(report: dict[str, Any]) -> str:
    """Returns one line with its priority for the journal, or "" without changes."""
    dropped, short = report["dropped"], report["short"]
    words = f"{report['after'] / 1e9:.1f} GB kept, {report['free'] / 1e9:.1f} GB free"
    if short:
        return f"<4>{report['folder']}: {short / 1e9:.1f} GB too much that cannot be dropped; {words}"
    if dropped["count"]:
        return f"<5>{report['folder']}: dropped {dropped['bytes'] / 1e9:.1f} GB, {dropped['count']} blobs; {words}"
    return ""


def remember(report: dict[str, Any]) -> None:
    """Stores the last report, and the last report with a deletion."""
    try:
        with open(STATE, encoding="utf-8") as handle:
            dropped = json.load(handle).get("dropped")
    except (OSError, ValueError, AttributeError):
        dropped = None
    if report["dropped"]["count"]:
        dropped = report
    with open(STATE + ".new", "w", encoding="utf-8") as handle:
        json.dump({"last": report, "dropped": dropped}, handle)
    os.replace(STATE + ".new", STATE)


@contextlib.contextmanager
def alone(folder: str) -> Iterator[None]:
    """Waits until no other one is at work."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def rule_of(given: dict[str, Any], folder: str) -> Rule:
    """The configuration's rule. Percent are of the file system that holds the folder."""
    keep_free = shutil.disk_usage(folder).total * given["free_percent"] // 100
    return Rule(given["limit"], keep_free, given["keep_days"] * DAY_S)


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """Returns the parsed command line."""
    parser = argparse.ArgumentParser(description="Drop from the Docker cache what no machine asks for.")
    parser.add_argument("--limit", type=int, metavar="BYTES", help="as if this were the limit of its size")
    parser.add_argument("--check", action="store_true", help="only say what would be dropped")
    parser.add_argument("--journal", action="store_true", help="say one line, and only where there was something to do")
    return parser.parse_args(words)


def main() -> None:
    """Runs once. A second instance waits."""
    given = arguments(sys.argv[1:])
    with open(CONFIGURATION, encoding="utf-8") as handle:
        configuration = json.load(handle)
    if given.limit is not None:
        configuration["limit"] = given.limit
    folder = configuration["folder"]
    os.makedirs(folder, exist_ok=True)  # as the pod does, which may start later
    with alone(folder):
        report = collect(folder, rule_of(configuration, folder), check=given.check)
        if not given.check:
            remember(report)
    line = told(report) if given.journal else json.dumps(report)
    if line:
        print(line)


if __name__ == "__main__":
    main()
