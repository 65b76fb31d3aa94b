"""Deliberate faults: failures of real machines, simulated on a lab machine from the controller host."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from pai_install.errors import ExitCode, PaiError
from pai_install.lab import cgroups, disk, gpu_stand_in, machine
from pai_install.lab.box import box_hierarchies, require_root
from pai_install.lab.gpu_stand_in import GpuState
from pai_install.lab.names import lab_names, machine_names
from pai_install.lab.spec import LabMachine, LabSpec
from pai_install.system.proc import run

INTERFACES = Path("/sys/class/net")
_IFF_UP = 1
# First what the kernel may lack: delay and rate; then rate alone.
_SLOW = (
    ("100 ms more each way and 10 Mbit/s", ["netem", "delay", "100ms", "rate", "10mbit"]),
    ("1 Mbit/s, no delay: this kernel has no netem", ["tbf", "rate", "1mbit", "burst", "16kb", "latency", "400ms"]),
)


class Fault(StrEnum):
    """A fault of a machine."""

    POWER_OFF = "power-off"
    PAUSE = "pause"
    NET_CUT = "net-cut"
    SLOW_NET = "slow-net"
    DISK_FULL = "disk-full"


def inject(spec: LabSpec, one: LabMachine, fault: Fault) -> str:
    """Injects a fault and returns one line about it. Raises PaiError if the controller host cannot simulate it."""
    require_root()
    return _INJECTORS[fault](spec, one)


def clear(spec: LabSpec, one: LabMachine) -> tuple[str, ...]:
    """Clears every fault except power-off and returns their names."""
    names = machine_names(spec, one)
    found = present_faults(spec, one)
    for folder in _groups(spec, one):
        cgroups.thaw(folder)
    if Fault.NET_CUT in found:
        run(["ip", "link", "set", names.veth, "up"])
    if Fault.SLOW_NET in found:
        run(["tc", "qdisc", "del", "dev", names.veth, "root"])
        # A fault that was injected halfway has no queue inside the machine.
        run(["tc", "-netns", names.netns, "qdisc", "del", "dev", "eth0", "root"], check=False)
    disk.filler(names).unlink(missing_ok=True)
    shown = gpu_stand_in.shown(spec, one)
    if shown is GpuState.HEALTHY:
        return tuple(fault.value for fault in found)
    gpu_stand_in.show(spec, one, GpuState.HEALTHY)
    return (*(fault.value for fault in found), shown.value)


def present_faults(spec: LabSpec, one: LabMachine) -> tuple[Fault, ...]:
    """Returns the current faults of the machine except power-off, as observed on the host."""
    names = machine_names(spec, one)
    found: list[Fault] = []
    if any(cgroups.is_frozen(folder) for folder in _groups(spec, one)):
        found.append(Fault.PAUSE)
    flags = INTERFACES / names.veth / "flags"
    if flags.exists():
        if not int(flags.read_text(), 16) & _IFF_UP:
            found.append(Fault.NET_CUT)
        queue = run(["tc", "qdisc", "show", "dev", names.veth, "root"], check=False).stdout
        if any(f"qdisc {words[0]} " in queue for _, words in _SLOW):
            found.append(Fault.SLOW_NET)
    if disk.filler(names).exists():
        found.append(Fault.DISK_FULL)
    return tuple(found)


def _groups(spec: LabSpec, one: LabMachine) -> tuple[Path, ...]:
    return cgroups.machine_cgroups(box_hierarchies(), lab_names(spec).lab, one.name).own


def _power_off(spec: LabSpec, one: LabMachine) -> str:
    machine.kill([], _groups(spec, one))
    return f"{one.name} is off: every process ended at once, nothing was stopped or synced"


def _pause(spec: LabSpec, one: LabMachine) -> str:
    frozen = [cgroups.freeze(folder, frozen=True) for folder in _groups(spec, one)]
    if not any(frozen):
        raise _cannot("this kernel has no freezer for control groups")
    return f"{one.name} hangs: all its processes are frozen; its kernel still answers ping"


def _net_cut(spec: LabSpec, one: LabMachine) -> str:
    run(["ip", "link", "set", machine_names(spec, one).veth, "down"])
    return f"{one.name} is unplugged: no packet reaches it or leaves it"


def _slow_net(spec: LabSpec, one: LabMachine) -> str:
    names = machine_names(spec, one)
    for meaning, words in _SLOW:
        box_side = run(["tc", "qdisc", "replace", "dev", names.veth, "root", *words], check=False)
        inside = ["tc", "-netns", names.netns, "qdisc", "replace", "dev", "eth0", "root", *words]
        if box_side.ok and run(inside, check=False).ok:
            return f"{one.name} has a slow network: {meaning}"
    raise _cannot("this kernel has neither netem nor tbf")


def _disk_full(spec: LabSpec, one: LabMachine) -> str:
    if not disk.fill(machine_names(spec, one)):
        raise _cannot("the controller host has no loop devices, so the machine's disk is the box's own")
    return f"{one.name} has a full disk: not a byte left in / and /var/lib; the box's own disk is not touched"


def _cannot(why: str) -> PaiError:
    return PaiError(f"cannot inject the fault: {why}", code="lab-fault-impossible", exit_code=ExitCode.PREFLIGHT_FAILED)


_INJECTORS: dict[Fault, Callable[[LabSpec, LabMachine], str]] = {
    Fault.POWER_OFF: _power_off,
    Fault.PAUSE: _pause,
    Fault.NET_CUT: _net_cut,
    Fault.SLOW_NET: _slow_net,
    Fault.DISK_FULL: _disk_full,
}
