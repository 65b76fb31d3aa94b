"""What runs in the user-mode Linux of test_quota.py, as its first process: limits folders and writes into them."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

MIB = 1 << 20
# finit_module of x86
_LOAD = 313


def mounted(number: str, kind: str, *options: str) -> Path:
    """One of the images, in a folder of its own."""
    place = Path("/mnt") / number
    place.mkdir()
    subprocess.run(["mount", "-t", kind, *options, f"/dev/ubd{number}", str(place)], check=True)
    return place


def load_modules(folder: Path) -> None:
    """The kernel's format of ext4's quotas."""
    libc = ctypes.CDLL(None, use_errno=True)
    for name in ("quota_tree", "quota_v2"):
        descriptor = os.open(folder / f"kernel/fs/quota/{name}.ko", os.O_RDONLY)
        if libc.syscall(_LOAD, descriptor, b"", 0) != 0:
            raise OSError(ctypes.get_errno(), f"{name} is not loaded")


def write(path: Path, mib: int) -> int:
    """How much of it user 1000 can write, in MiB."""
    process = os.fork()
    if not process:
        os.setgid(1000)
        os.setuid(1000)
        try:
            with path.open("wb", buffering=0) as file:
                while file.tell() < mib * MIB and file.write(bytes(MIB)) == MIB:
                    pass
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    return path.stat().st_size // MIB


def limited(quota: Any, top: Path, data: int, user: int) -> list[str]:
    """Takes the steps that are left; the folders that they were for."""
    found = quota.looked_at(f"{top}/data", data, each=False) + quota.looked_at(f"{top}/users", user, each=True)
    steps = quota.missing(found)
    for step in steps:
        quota.take(step)
    return [str(Path(step.path).relative_to(top)) for step in steps]


def tried(quota: Any, place: Path) -> dict[str, Any]:
    """The life of the two folders, step by step."""
    top = place / "share"
    for name in ("data/sub", "users/alice/runs", "users/bob"):
        (top / name).mkdir(parents=True)
    (top / "data/sub/old").write_bytes(bytes(3 * MIB))
    (top / "users/alice/runs/old").write_bytes(bytes(2 * MIB))
    (top / "data/to").symlink_to("/etc")
    os.mkfifo(top / "data/fifo")
    subprocess.run(["chown", "--recursive", "1000:1000", str(top)], check=True)
    seen: dict[str, Any] = {"kept": quota.kept(str(top / "data/not/yet"))}
    if not seen["kept"]:
        seen["unlimited"] = [*quota.looked_at(f"{top}/users", 0, each=True)[0]]
        return seen
    drift = {"path": f"{top}/users", "size": 5 * MIB, "each": True}
    seen["first"] = limited(quota, top, 8 * MIB - 5, 5 * MIB)
    seen["again"] = limited(quota, top, 8 * MIB - 5, 5 * MIB)
    seen["drift"] = quota.problem(drift)
    seen["data"] = [write(top / "data/sub/new", 4), write(top / "data/more", 4)]
    seen["alice"] = [write(top / "users/alice/runs/new", 2), write(top / "users/alice/more", 4)]
    seen["bob"] = write(top / "users/bob/new", 4)
    (top / "users/carol").mkdir()
    (top / "users/alice/runs").rename(top / "users/runs")
    seen["drift later"] = quota.problem(drift).replace(str(top), "")
    seen["later"] = limited(quota, top, 8 * MIB, 5 * MIB)
    seen["again later"] = limited(quota, top, 8 * MIB, 5 * MIB)
    seen["higher"] = [*limited(quota, top, 10 * MIB, 5 * MIB), write(top / "data/more", 4)]
    seen["none"] = [*limited(quota, top, 0, 5 * MIB), write(top / "data/more", 12)]
    return seen


def main(utilities: str, modules: str, out: str) -> None:
    """Writes what it saw to the third image, as JSON."""
    sys.path.insert(0, utilities)
    import pai_quota  # type: ignore[import-not-found] # noqa: PLC0415 - in the guest it is a file like any other

    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    seen: dict[str, Any]
    try:
        subprocess.run(["mount", "-t", "tmpfs", "none", "/mnt"], check=True)
        load_modules(Path(modules))
        places = {
            "xfs": mounted("a", "xfs", "-o", "prjquota"),
            "ext4": mounted("b", "ext4", "-o", "prjquota"),
            "plain": mounted("c", "ext4"),
        }
        seen = {name: tried(pai_quota, place) for name, place in places.items()}
    except Exception:
        seen = {"failed": traceback.format_exc()}
    with Path(out).open("r+") as file:
        file.write(json.dumps(seen))
        file.flush()
        os.fsync(file.fileno())
    Path("/proc/sysrq-trigger").write_text("o")


if __name__ == "__main__":
    main(*sys.argv[1:])
