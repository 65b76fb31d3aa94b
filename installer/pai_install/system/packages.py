"""Debian packages of the controller host. One process installs at a time, because apt does not wait for its lists."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

import filelock

from pai_install.errors import PaiError
from pai_install.system.proc import Completed, run

_LOCK = Path("/run/pai-install-apt.lock")
_WAIT_S = 300
_PAUSE_S = 2.0


def install(packages: Iterable[str]) -> None:
    """Installs packages, and waits up to 5 minutes for other package managers.

    Raises PaiError with apt's message on a failure, or without root permissions.
    """
    names = list(packages)
    if os.geteuid() != 0:
        raise PaiError(
            f"cannot install {' '.join(names)}: root is required",
            code="packages-need-root",
            remedy=f"run sudo apt-get install {' '.join(names)}",
        )
    try:
        with filelock.FileLock(_LOCK, timeout=_WAIT_S):
            _update()
            _apt("-o", f"DPkg::Lock::Timeout={_WAIT_S}", "-y", "--no-install-recommends", "install", *names)
    except filelock.Timeout as error:
        raise PaiError(
            (f"cannot install packages: another pai-install has been installing some for {_WAIT_S // 60} minutes"),
            code="packages-locked",
            remedy="repeat the command after its end",
        ) from error


def _update() -> None:
    """Updates the package lists. A failed source is an error only if a package is not found without it."""
    deadline = time.monotonic() + _WAIT_S
    while _is_locked(_apt("update", check=False)) and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)


def _is_locked(done: Completed) -> bool:
    return not done.ok and "Could not get lock" in done.stderr


def _apt(*words: str, check: bool = True) -> Completed:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_SUSPEND": "1", "LC_ALL": "C"}
    return run(["apt-get", "-q", *words], env=environment, check=check)
