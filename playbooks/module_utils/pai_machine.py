"""Files and programs of a machine, read in the same way by all observers."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence

CGROUP_CONTROLLERS = "/sys/fs/cgroup/cgroup.controllers"
# a login's PATH may lack sbin
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAM_MISSING, TOOK_TOO_LONG = 127, 124  # as a shell and timeout(1) say it


def read(path: str, limit: int = 1 << 20) -> str:
    """A file's text without surrounding space, empty when it cannot be read. limit: bytes."""
    try:
        with open(path, "rb") as handle:
            return handle.read(limit).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def program_path() -> str:
    """Where programs are looked for: the folders of PATH, then the system's."""
    return os.pathsep.join(filter(None, (os.environ.get("PATH"), SYSTEM_PATH)))


def command(argv: Sequence[str], timeout_s: float = 5.0, *, errors: bool = False) -> tuple[int, str]:
    """Runs a program and returns exit status and standard output. Status 127: it cannot start. Status 124: timeout.

    errors: include standard error.
    """
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if errors else subprocess.DEVNULL,
            env={**os.environ, "PATH": program_path(), "LC_ALL": "C"},
            timeout=timeout_s,
            check=False,
        )
    except OSError:
        return PROGRAM_MISSING, ""
    except subprocess.TimeoutExpired:
        return TOOK_TOO_LONG, ""
    return done.returncode, done.stdout.decode("utf-8", "replace")


def os_release(text: str | None = None) -> dict[str, str]:
    """Parses /etc/os-release: lower-case names (id, version_id, version_codename, pretty_name). text: its content."""
    pairs = re.findall(r"^([A-Z_]+)=\"?([^\"\n]*)\"?$", read("/etc/os-release") if text is None else text, re.MULTILINE)
    return {name.lower(): value for name, value in pairs}


def memory_bytes(text: str | None = None) -> int | None:
    """Returns MemTotal of /proc/meminfo in bytes, or None. text: its content."""
    found = re.search(r"^MemTotal:\s+(\d+) kB", read("/proc/meminfo") if text is None else text, re.MULTILINE)
    return int(found.group(1)) * 1024 if found else None


def cgroup_version() -> int:
    """2 when the unified hierarchy is the only one."""
    return 2 if os.path.exists(CGROUP_CONTROLLERS) else 1


def cgroup_driver(version: int, in_container: bool) -> str:
    """The cgroup driver that the kubelet, containerd and Docker of a machine all use.

    systemd, except on cgroup v1 in a container, where the machine's systemd does not own the hierarchies.
    """
    return "cgroupfs" if version == 1 and in_container else "systemd"
