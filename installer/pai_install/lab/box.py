"""State that all labs of the controller host share: the lock, kernel settings, control group trees."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from pai_install.errors import ExitCode, PaiError
from pai_install.lab import cgroups
from pai_install.lab.names import LABS_DIR, RECORD_NAME
from pai_install.system.files import write_atomic

# Kernel setting of the box -> the least that labs work with. Every systemd, containerd and kubelet takes some
# inotify instances, all of them as the same root: with the usual 128, the CRI of a fourth machine does not start.
SETTINGS = {
    Path("/proc/sys/net/ipv4/ip_forward"): 1,
    Path("/proc/sys/fs/inotify/max_user_instances"): 8192,
}
SETTINGS_BEFORE = LABS_DIR / "settings-before.json"
LOCK_TIMEOUT_S = 120


@contextmanager
def lab_lock() -> Iterator[None]:
    """Allows one change to labs at a time on this host. Raises PaiError without root, or if another takes too long."""
    require_root()
    LABS_DIR.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(LABS_DIR / ".lock", timeout=LOCK_TIMEOUT_S):
            yield
    except Timeout as error:
        raise PaiError(
            "cannot manage the lab: another lab command is running", code="lab-locked", remedy="wait for its end"
        ) from error


def require_root() -> None:
    """Raises PaiError unless this process is root's."""
    if os.geteuid() != 0:
        raise PaiError(
            "cannot manage the lab: root is required",
            code="lab-needs-root",
            remedy="repeat the command with sudo",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )


def box_hierarchies() -> tuple[cgroups.Hierarchy, ...]:
    """The box's control group trees."""
    return cgroups.hierarchies(Path("/proc/self/mounts").read_text())


def raise_settings() -> tuple[str, ...]:
    """Raises kernel settings that machines need and cannot set, and returns the changed ones.

    The old values are recorded first, so that `restore_settings` also works after a crash.
    """
    low = {path: value for path, least in SETTINGS.items() if int(value := path.read_text().strip()) < least}
    if low:
        known = json.loads(SETTINGS_BEFORE.read_text()) if SETTINGS_BEFORE.exists() else {}
        write_atomic(SETTINGS_BEFORE, json.dumps({**{str(path): value for path, value in low.items()}, **known}))
    for path in low:
        path.write_text(f"{SETTINGS[path]}\n")
    return tuple(path.name for path in low)


def restore_settings() -> None:
    """Restores the kernel settings after the last lab is deleted."""
    if SETTINGS_BEFORE.exists() and not any(LABS_DIR.glob(f"*/{RECORD_NAME}")):
        for path, value in json.loads(SETTINGS_BEFORE.read_text()).items():
            Path(path).write_text(f"{value}\n")
        SETTINGS_BEFORE.unlink()
