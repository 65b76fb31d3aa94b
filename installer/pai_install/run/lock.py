"""One run at a time on a site."""

from __future__ import annotations

import getpass
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import filelock

from pai_install.engine.processes import OwnerProcess
from pai_install.errors import ExitCode, PaiError
from pai_install.system.files import write_atomic
from pai_install.system.state_file import MISSING, reading

_TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of the lock: process id, user, machine, operation, and start (ISO 8601, UTC).

    owner: unambiguous id of the process (engine.processes.Owner).
    """

    pid: int
    user: str
    host: str
    verb: str
    since: str
    owner: str = ""

    def __str__(self) -> str:
        return f"`{self.verb}` by {self.user} on {self.host}, process {self.pid}, since {self.since}"


def holder(state_dir: Path) -> Holder | None:
    """Returns the holder of the site's lock, or None without one or before it has written its file. Never
    blocks a run.
    """
    found = _read(state_dir / "lock.json")
    if found is None:
        return None
    if found.host != socket.gethostname():
        return found  # nothing here tells whether it is gone
    owner = OwnerProcess.parse(found.owner)
    if owner is not None and owner.here:
        return found if owner.alive() else None
    # A try takes the lock for a moment, and a run that starts then is refused. So it is the last resort.
    return found if _locked(state_dir) else None


@contextmanager
def site_lock(state_dir: Path, verb: str) -> Iterator[None]:
    """Locks the site for one run, and waits for a run that is ending.

    The kernel releases the lock of a dead process, so the lock of a killed run is free. Raises PaiError with the holder
    if another run has it.
    """
    lock = filelock.FileLock(state_dir / "lock", timeout=_TIMEOUT_S, mode=0o600)
    card = state_dir / "lock.json"
    try:
        lock.acquire()
    except filelock.Timeout as error:
        raise _refusal(_read(card)) from error
    try:
        _refuse_foreign(card)
        write_atomic(card, json.dumps(asdict(_myself(verb))), mode=0o600)
        try:
            yield
        finally:
            card.unlink(missing_ok=True)
    finally:
        lock.release()


def _locked(state_dir: Path) -> bool:
    """Returns whether a run holds the lock by trying to lock it, if the holder is not readable otherwise."""
    try:
        with filelock.FileLock(state_dir / "lock", timeout=0, mode=0o600):
            return False
    except filelock.Timeout:
        return True


def _myself(verb: str) -> Holder:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return Holder(os.getpid(), _user(), socket.gethostname(), verb, since, str(OwnerProcess.current()))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as an id without a name
        return str(os.getuid())


def _parsed(card: Path) -> Holder:
    return Holder(**json.loads(card.read_text()))


def _read(card: Path) -> Holder | None:
    try:
        return _parsed(card)
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def _refuse_foreign(card: Path) -> None:
    """A run of another machine may still be alive where the file system does not share locks.

    A damaged card may be of another machine: it is written in one step, so that no crash of this one damages it.
    """
    try:
        with reading(card, "if no run on another host uses this site, remove the file", code="site-lock-damaged"):
            holder = _parsed(card)
    except MISSING:
        return
    if holder.host != socket.gethostname():
        raise PaiError(
            f"cannot lock the site: a run on another host holds the lock: {holder}",
            code="site-locked-from-other-machine",
            remedy=f"if that run has ended, delete {card}",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )


def _refusal(holder: Holder | None) -> PaiError:
    return PaiError(
        f"cannot lock the site: {holder or 'another run has just started'}",
        code="site-locked",
        remedy="wait for the end of that run, or stop it with Ctrl-C",
        exit_code=ExitCode.PREFLIGHT_FAILED,
    )
