"""Stand-ins for CPUs and memory, where a machine's SKU has more than the box: files that the kubelet reads."""

from __future__ import annotations

import os
from pathlib import Path

from pai_install.lab.entry import Entry
from pai_install.lab.spec import LabMachine

_FOLDER = "var/lib/pai-stand-in-size"
_SBIN = "usr/local/sbin"
_UNITS = "etc/systemd/system"
_SCRIPT = f"""#!/bin/sh
# Shows the CPUs and the memory of the machine's SKU: stand-ins, since a lab machine has those of the box.
folder=/{_FOLDER}
if [ -d "$folder/node" ]; then
  mount --bind "$folder/node" /sys/devices/system/node
  mount --bind "$folder/online" /sys/devices/system/cpu/online
fi
if [ -f "$folder/memory-kb" ]; then
  read -r kb <"$folder/memory-kb"
  sed "s/^MemTotal:.*/MemTotal: $kb kB/" /proc/meminfo >"$folder/meminfo"
  mount --bind "$folder/meminfo" /proc/meminfo
fi
"""
_UNIT = f"""[Unit]
Description=Show stand-ins for CPUs and memory
DefaultDependencies=no
Before=sysinit.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/{_SBIN}/size-boot-stand-in
"""


def box_cores() -> int:
    """The CPUs of the box."""
    return os.cpu_count() or 1


def box_memory() -> int:
    """The memory of the box in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def entries(machine: LabMachine) -> dict[str, Entry]:
    """Everything that makes a machine show what its SKU has; {} where the box has as much."""
    files: dict[str, str] = {}
    if machine.cores > box_cores():
        files |= {"online": f"0-{machine.cores - 1}\n", **_node(machine.cores)}
    if machine.memory > box_memory():
        files["memory-kb"] = f"{machine.memory // 1024}\n"
    if not files:
        return {}
    return {f"{_FOLDER}/{name}": Entry(text) for name, text in files.items()} | {
        f"{_SBIN}/size-boot-stand-in": Entry(_SCRIPT, 0o755),
        f"{_UNITS}/size-boot-stand-in.service": Entry(_UNIT),
        f"{_UNITS}/sysinit.target.wants/size-boot-stand-in.service": Entry(link="../size-boot-stand-in.service"),
    }


def _node(cores: int) -> dict[str, str]:
    """One NUMA node with all CPUs, below /sys/devices/system/node, as far as the kubelet and libnuma read it."""
    files = {
        "node/online": "0\n",
        "node/possible": "0\n",
        "node/node0/cpulist": f"0-{cores - 1}\n",
        "node/node0/distance": "10\n",
        "node/node0/meminfo": _node_memory(),
    }
    for cpu in range(cores):
        topology = f"node/node0/cpu{cpu}/topology"
        files |= {f"{topology}/core_id": f"{cpu}\n", f"{topology}/physical_package_id": "0\n"}
    return files


def _node_memory() -> str:
    path = Path("/sys/devices/system/node/node0/meminfo")
    return path.read_text() if path.exists() else f"Node 0 MemTotal: {box_memory() // 1024} kB\n"
