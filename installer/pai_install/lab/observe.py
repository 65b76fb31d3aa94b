"""What a lab's machines are doing now. Changes nothing, needs no lock."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pai_install.lab import cgroups
from pai_install.lab.box import box_hierarchies
from pai_install.lab.faults import present_faults
from pai_install.lab.gpu_stand_in import GpuState, shown
from pai_install.lab.machine import start_time
from pai_install.lab.names import lab_names
from pai_install.lab.record import read_record
from pai_install.lab.spec import LabMachine, LabSpec

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class MachineStatus:
    """One machine. state: running, stopped (its disk is kept) or absent.

    faults: made by `lab fault` or shown by `lab gpu`, not healed.
    """

    name: str
    address: str
    state: str
    memory_bytes: int | None = None
    uptime_s: int | None = None
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LabStatus:
    """A lab. name: what its things on the box are named after."""

    name: str
    machines: tuple[MachineStatus, ...]

    @property
    def all_running(self) -> bool:
        """Whether every machine of the site runs and has no fault."""
        return all(machine.state == "running" and not machine.faults for machine in self.machines)

    def document(self) -> dict[str, Any]:
        """The status as JSON data."""
        rows = [asdict(machine) for machine in self.machines]
        return {"schema_version": SCHEMA_VERSION, "lab": self.name, "ok": self.all_running, "machines": rows}


def status(spec: LabSpec) -> LabStatus:
    """The state of every machine of `spec`. Raises PaiError when the lab's record cannot be read."""
    names = lab_names(spec)
    recorded = read_record(names.record) is not None
    trees = box_hierarchies()
    return LabStatus(names.lab, tuple(_machine_status(spec, one, trees, recorded=recorded) for one in spec.machines))


def _machine_status(
    spec: LabSpec, one: LabMachine, trees: tuple[cgroups.Hierarchy, ...], *, recorded: bool
) -> MachineStatus:
    folders = cgroups.machine_cgroups(trees, lab_names(spec).lab, one.name).own
    started = [ticks for pid in cgroups.members(folders[0]) if (ticks := start_time(pid)) is not None]
    if not recorded or not started:
        return MachineStatus(one.name, str(one.address), "stopped" if recorded else "absent")
    uptime = time.clock_gettime(time.CLOCK_BOOTTIME) - min(started) / os.sysconf("SC_CLK_TCK")
    return MachineStatus(one.name, str(one.address), "running", _memory(folders), int(uptime), faults_of(spec, one))


def faults_of(spec: LabSpec, one: LabMachine) -> tuple[str, ...]:
    """What is wrong with a machine that runs, by name; what its stand-ins for GPUs show included."""
    found = tuple(fault.value for fault in present_faults(spec, one))
    gpus = shown(spec, one)
    return found if gpus is GpuState.HEALTHY else (*found, gpus.value)


def _memory(folders: Iterable[Path]) -> int | None:
    for folder in folders:
        for name in ("memory.usage_in_bytes", "memory.current"):
            if (folder / name).exists():
                return int((folder / name).read_text())
    return None
