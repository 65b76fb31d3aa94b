"""Current state of a lab's machines. Read-only and without lock."""

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
from pai_install.lab.mixin import mixins_of
from pai_install.lab.names import lab_names, machine_names
from pai_install.lab.record import LabRecord, read_record
from pai_install.lab.spec import LabMachine, LabSpec

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class MachineStatus:
    """One machine. state: running, stopped (its disk is kept), or absent.

    faults: of `lab fault` or `lab gpu`, not yet healed. suite: of its base image, "file" for an unpacked one. mixins:
    executed ones.
    """

    name: str
    address: str
    state: str
    memory_bytes: int | None = None
    uptime_s: int | None = None
    faults: tuple[str, ...] = ()
    suite: str = ""
    mixins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LabStatus:
    """A lab. name: prefix of its objects on the host."""

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

    def table(self) -> str:
        """A line for each machine."""
        rows = [("MACHINE", "STATE", "ADDRESS", "MEMORY", "UPTIME", "SYSTEM", "MIX-INS", "FAULTS")]
        for machine in self.machines:
            memory = "-" if machine.memory_bytes is None else f"{machine.memory_bytes >> 20} MiB"
            uptime = "-" if machine.uptime_s is None else f"{machine.uptime_s // 60} min {machine.uptime_s % 60} s"
            faults = " ".join(machine.faults) or "-"
            made = (machine.suite or "-", " ".join(machine.mixins) or "-")
            rows.append((machine.name, machine.state, machine.address, memory, uptime, *made, faults))
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join(line.rstrip() for line in lines)


def status(spec: LabSpec) -> LabStatus:
    """The state of every machine of `spec`. Raises PaiError when the lab's record cannot be read."""
    names = lab_names(spec)
    record = read_record(names.record)
    trees = box_hierarchies()
    return LabStatus(names.lab, tuple(_machine_status(spec, one, trees, record) for one in spec.machines))


def _machine_status(
    spec: LabSpec, one: LabMachine, trees: tuple[cgroups.Hierarchy, ...], record: LabRecord | None
) -> MachineStatus:
    if record is None:
        return MachineStatus(one.name, str(one.address), "absent")
    suite, mixins = _suite(spec, one), mixins_of(record, one)
    folders = cgroups.machine_cgroups(trees, lab_names(spec).lab, one.name).own
    started = [ticks for pid in cgroups.members(folders[0]) if (ticks := start_time(pid)) is not None]
    if not started:
        return MachineStatus(one.name, str(one.address), "stopped", suite=suite, mixins=mixins)
    # The start of a process counts from the boot, with the time of suspension.
    uptime = time.clock_gettime(time.CLOCK_BOOTTIME) - min(started) / os.sysconf("SC_CLK_TCK")
    memory, faults = _memory(folders), faults_of(spec, one)
    return MachineStatus(one.name, str(one.address), "running", memory, int(uptime), faults, suite, mixins)


def _suite(spec: LabSpec, one: LabMachine) -> str:
    base = machine_names(spec, one).base
    return base.readlink().name.split("-")[1] if base.is_symlink() else ""


def faults_of(spec: LabSpec, one: LabMachine) -> tuple[str, ...]:
    """Returns the names of a running machine's faults, including displayed GPU faults."""
    found = tuple(fault.value for fault in present_faults(spec, one))
    gpus = shown(spec, one)
    return found if gpus is GpuState.HEALTHY else (*found, gpus.value)


def _memory(folders: Iterable[Path]) -> int | None:
    for folder in folders:
        for name in ("memory.usage_in_bytes", "memory.current"):
            if (folder / name).exists():
                return int((folder / name).read_text())
    return None
