"""The running machine: systemd-nspawn in namespaces and control groups of its own, and finding it again."""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pai_install.lab import cgroups
from pai_install.lab.names import MachineNames, data_folders
from pai_install.lab.spec import LabMachine
from pai_install.system import proc

ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    # the box's kernel decides, not a filter: container runtimes need the calls that nspawn blocks
    "SYSTEMD_SECCOMP": "0",
    "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "1",
}
_REBOOT_STATUS = 133  # nspawn's exit status when the machine asked to be started again


@dataclass(frozen=True, slots=True)
class Process:
    """A process that cannot be mistaken for a later one of the same number. `started` is in clock ticks."""

    pid: int
    started: int

    def __str__(self) -> str:
        return f"{self.pid}:{self.started}"

    @classmethod
    def parse(cls, text: str) -> Process:
        """The opposite of str()."""
        pid, _, started = text.partition(":")
        return cls(int(pid), int(started))

    @property
    def alive(self) -> bool:
        """Whether it still runs (a zombie does not)."""
        return start_time(self.pid) == self.started


def start_time(pid: int) -> int | None:
    """Returns the start time of a process in clock ticks since boot, or None if it has ended or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def nspawn_command(machine: LabMachine, names: MachineNames, *, legacy_cgroups: bool) -> list[str]:
    """The command line that boots a machine."""
    binds = [f"--bind={names.data / name}:{path}" for name, path in data_folders(machine).items()]
    if Path("/lib/modules").is_dir():
        binds.append("--bind-ro=/lib/modules")
    # systemd 256 and newer refuse version 1 control groups unless told twice
    init = ["SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"] if legacy_cgroups else []
    return [
        "systemd-nspawn",
        "--quiet",
        f"--directory={names.root}",
        f"--machine={names.nspawn}",
        f"--hostname={machine.name}",
        "--boot",
        f"--network-namespace-path=/run/netns/{names.netns}",
        "--register=no",
        "--keep-unit",
        "--capability=all",
        "--resolv-conf=off",
        "--timezone=off",
        "--link-journal=no",
        *binds,
        # The kubelet reads the kernel log, and does not start without it.
        "--bind-ro=/dev/kmsg",
        "--bind=/dev/fuse",
        # runc makes a keyring for each container, and limits devices by a BPF program.
        "--system-call-filter=@keyring bpf perf_event_open",
        *init,
    ]


def keeper_script(command: Iterable[str], groups: cgroups.MachineCgroups) -> str:
    """A shell script that enters the machine's control groups, boots it, and boots it again when it reboots."""
    lines = ["#!/bin/sh", *(f"echo 0 > {shlex.quote(str(path))}" for path in groups.keeper)]
    lines += ["while :; do", "  ("]
    lines += [f"    echo 0 > {shlex.quote(str(path))}" for path in groups.machine]
    lines += [f"    exec {shlex.join(command)}", "  )"]
    lines += [f"  [ $? -eq {_REBOOT_STATUS} ] || exit 0", "done"]
    return "\n".join(lines) + "\n"


def start(names: MachineNames, script: str) -> Process:
    """Starts the keeper, which outlives this process."""
    path = names.folder / "start.sh"
    path.write_text(script)
    pid = proc.spawn(["sh", path], env=ENVIRONMENT, log=names.console)
    return Process(pid, start_time(pid) or 0)


def is_running(groups: cgroups.MachineCgroups) -> bool:
    """Whether the machine has processes."""
    return bool(_alive(path.parent for path in groups.machine))


def kill(keepers: Iterable[Process], folders: Iterable[Path], *, timeout_s: float = 10.0) -> None:
    """Kills keepers and everything in the control groups simultaneously. Raises TimeoutError.

    A survivor could report the others: an SSH session would report the death of its program.
    """
    groups = list(folders)
    for process in keepers:
        if process.alive:
            _signal(process.pid)
    deadline = time.monotonic() + timeout_s
    while alive := _alive(groups):
        for folder in groups:
            cgroups.freeze(folder, frozen=True)
        for pid in _alive(groups):
            _signal(pid)
        for folder in groups:
            cgroups.thaw(folder)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {sorted(alive)} do not end")
        time.sleep(0.05)


def _alive(groups: Iterable[Path]) -> set[int]:
    return {pid for folder in groups for pid in cgroups.members(folder) if start_time(pid) is not None}


def _signal(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
