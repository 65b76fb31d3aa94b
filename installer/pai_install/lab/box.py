"""What all labs of this box share: the lock, the switch for packet forwarding, the control group trees."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from pai_install.errors import ExitCode, PaiError
from pai_install.lab import cgroups
from pai_install.lab.names import LABS_DIR, RECORD_NAME
from pai_install.system.files import write_atomic

FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
FORWARDING_BEFORE = LABS_DIR / "forwarding-before"
LOCK_PATIENCE_S = 120


@contextmanager
def lab_lock() -> Iterator[None]:
    """One change to labs at a time on this box. Raises PaiError without root, or when another takes too long."""
    require_root()
    LABS_DIR.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(LABS_DIR / ".lock", timeout=LOCK_PATIENCE_S):
            yield
    except Timeout as error:
        raise PaiError("another lab command runs on this box", remedy="wait for it to end") from error


def require_root() -> None:
    """Raises PaiError unless this process is root's."""
    if os.geteuid() != 0:
        raise PaiError(
            "the lab needs root: it makes mounts, namespaces and interfaces",
            remedy="run the same command with sudo",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )


def box_hierarchies() -> tuple[cgroups.Hierarchy, ...]:
    """The box's control group trees."""
    return cgroups.hierarchies(Path("/proc/self/mounts").read_text())


def allow_forwarding() -> bool:
    """Lets the box pass packets on, remembering what it was set to; False when it was allowed."""
    before = FORWARDING.read_text().strip()
    if before == "1":
        return False
    write_atomic(FORWARDING_BEFORE, before)
    FORWARDING.write_text("1\n")
    return True


def restore_forwarding() -> None:
    """Puts packet forwarding back to what it was, once no lab is left."""
    if FORWARDING_BEFORE.exists() and not any(LABS_DIR.glob(f"*/{RECORD_NAME}")):
        FORWARDING.write_text(FORWARDING_BEFORE.read_text() + "\n")
        FORWARDING_BEFORE.unlink()
