"""Finds and ends the processes of a run, also those of a run whose own process was killed.

Ansible's workers leave the process group of ansible-playbook, so killing the group is not enough. Every
process of a run carries its owner in the environment, and ssh's connection masters (which overwrite their
environment) carry the socket folder in their command line.
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
    """A process that runs Ansible: its id, its start time, since ids are used again, and its namespace of ids.

    namespace: inode of /proc/PID/ns/pid. Containers on one box may share folders and see each other's processes;
    an id of one means another process, or none, in the other.
    """

    pid: int
    started: int
    namespace: int

    def __str__(self) -> str:
        return f"{self.pid}.{self.started}.{self.namespace}"

    @property
    def here(self) -> bool:
        """Whether its id means the same process here; else nothing can be said of it."""
        return self.namespace == _namespace()

    def alive(self) -> bool:
        """Whether that very process still runs (a zombie does not); True where that cannot be seen from here."""
        return not self.here or (_running(self.pid) and _start_time(self.pid) == self.started)

    @classmethod
    def current(cls) -> OwnerProcess:
        """This process."""
        return cls(os.getpid(), _start_time(os.getpid()) or 0, _namespace())

    @classmethod
    def parse(cls, text: str) -> OwnerProcess | None:
        """Reads "PID.START.NAMESPACE", ignoring what follows a dash; None when it is not that."""
        numbers = text.partition("-")[0].split(".")
        if len(numbers) != len(fields(cls)) or not all(number.isdigit() for number in numbers):
            return None
        return cls(*map(int, numbers))


def owned_by(owner: OwnerProcess) -> frozenset[int]:
    """The process ids whose environment names `owner`, except the owner's own."""
    mark = f"{OWNER_VARIABLE}={owner}".encode()
    return frozenset(pid for pid in _pids() if pid != owner.pid and mark in _words(pid, "environ"))


def orphans() -> frozenset[int]:
    """Processes of runs whose owner is gone (it was killed); a run of another container is not judged."""
    found = set()
    for pid in _pids():
        for word in _words(pid, "environ"):
            if word.startswith(f"{OWNER_VARIABLE}=".encode()):
                owner = OwnerProcess.parse(word.decode(errors="replace").partition("=")[2])
                if owner is not None and not owner.alive():
                    found.add(pid)
    return frozenset(found)


def with_sockets_in(folder: Path) -> frozenset[int]:
    """The ssh processes whose command line names something in that very folder."""
    return frozenset(
        pid
        for pid in _pids()
        if (command := b" ".join(_words(pid, "cmdline"))).startswith(b"ssh") and f"{folder}/".encode() in command
    )


def end(pids: Iterable[int], *, timeout_s: float = 3.0) -> None:
    """Asks the processes to end, waits, then kills those that are left."""
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
    return int(words[19]) if len(words) > 19 else None


def _running(pid: int) -> bool:
    words = _stat(pid)
    return bool(words) and words[0] != "Z"
