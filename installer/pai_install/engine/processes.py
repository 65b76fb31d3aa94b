"""Finds and ends the processes of a run, including runs with a killed owner.

Ansible's workers leave the process group of ansible-playbook, so killing the group is not enough. Every process of a
run has its owner in the environment. ssh's connection masters overwrite their environment, but have the socket folder
in their command line.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

OWNER_VARIABLE = "PAI_INSTALL_OWNER"

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class OwnerProcess:
    """A process that runs Ansible: its id, its start time (ids are reused), and its PID namespace.

    namespace: inode of /proc/PID/ns/pid. Containers on one host may share folders and see each other's processes, but
    an id of one means another process, or none, in the other.
    """

    pid: int
    started: int
    namespace: int

    def __str__(self) -> str:
        return f"{self.pid}.{self.started}.{self.namespace}"

    @property
    def here(self) -> bool:
        """Returns whether its id means the same process here. Otherwise its state is unknown."""
        return self.namespace == _namespace()

    def alive(self) -> bool:
        """Returns whether the process still runs (zombies do not), or True if this cannot be determined here."""
        return not self.here or (_running(self.pid) and _start_time(self.pid) == self.started)

    @classmethod
    def current(cls) -> OwnerProcess:
        """This process."""
        return cls(os.getpid(), _start_time(os.getpid()) or 0, _namespace())

    @classmethod
    def parse(cls, text: str) -> OwnerProcess | None:
        """Parses "PID.START.NAMESPACE" and ignores text after a dash. Returns None for other text."""
        numbers = text.partition("-")[0].split(".")
        if len(numbers) != len(fields(cls)) or not all(number.isdigit() for number in numbers):
            return None
        return cls(*map(int, numbers))


def owned_by(owner: OwnerProcess) -> frozenset[int]:
    """Returns the ids of processes with `owner` in their environment, without the owner."""
    mark = f"{OWNER_VARIABLE}={owner}".encode()
    return frozenset(pid for pid in _pids() if pid != owner.pid and mark in _words(pid, "environ"))


def orphans() -> frozenset[int]:
    """Returns processes of runs with a killed owner, except runs of other containers."""
    found = set()
    for pid in _pids():
        for word in _words(pid, "environ"):
            if word.startswith(f"{OWNER_VARIABLE}=".encode()):
                owner = OwnerProcess.parse(word.decode(errors="replace").partition("=")[2])
                if owner is not None and not owner.alive():
                    found.add(pid)
    return frozenset(found)


def with_sockets_in(folder: Path) -> frozenset[int]:
    """Returns the ssh processes with a path directly in that folder in their command line."""
    return frozenset(
        pid
        for pid in _pids()
        # The command line of an ssh master is `ssh: SOCKET [mux]`.
        if (command := b" ".join(_words(pid, "cmdline"))).startswith(b"ssh") and f"{folder}/".encode() in command
    )


def end(pids: Iterable[int], *, timeout_s: float = 3.0) -> None:
    """Terminates the processes, waits, then kills the remaining ones."""
    left = _signal(pids, signal.SIGTERM)
    deadline = time.monotonic() + timeout_s
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = frozenset(pid for pid in left if _running(pid))
    _signal(left, signal.SIGKILL)


def _signal(pids: Iterable[int], number: signal.Signals) -> frozenset[int]:
    reached = set()
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue
        reached.add(pid)
    return frozenset(reached)


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())


def _words(pid: int, name: str) -> list[bytes]:
    try:
        return (_PROC / str(pid) / name).read_bytes().split(b"\0")
    except OSError:  # it ended meanwhile, or belongs to another user
        return []


def _namespace() -> int:
    return (_PROC / "self" / "ns" / "pid").stat().st_ino


def _stat(pid: int) -> list[str]:
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return []
    return text[text.rfind(")") + 2 :].split()  # the name in parentheses may contain spaces


def _start_time(pid: int) -> int | None:
    words = _stat(pid)
    # Field 22 of proc(5), without the id and the name.
    return int(words[19]) if len(words) > 19 else None


def _running(pid: int) -> bool:
    words = _stat(pid)
    # A zombie has ended, and only its parent has not asked for the exit status.
    return bool(words) and words[0] != "Z"
