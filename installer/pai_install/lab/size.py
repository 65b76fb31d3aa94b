"""A stand-in for memory, where a machine's SKU has more than the box. CPUs stay real: the kubelet writes cpusets."""

from __future__ import annotations

import os

from pai_install.lab.entry import Entry
from pai_install.lab.spec import LabMachine

_FOLDER = "var/lib/pai-stand-in-size"
_SBIN = "usr/local/sbin"
_UNITS = "etc/systemd/system"
_SCRIPT = f"""#!/bin/sh
# Shows the memory of the machine's SKU: a stand-in, since a lab machine has that of the box.
folder=/{_FOLDER}
read -r kb <"$folder/memory-kb"
sed "s/^MemTotal:.*/MemTotal: $kb kB/" /proc/meminfo >"$folder/meminfo"
mount --bind "$folder/meminfo" /proc/meminfo
"""
_UNIT = f"""[Unit]
Description=Show a stand-in for memory
DefaultDependencies=no
Before=sysinit.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/{_SBIN}/size-boot-stand-in
"""


def box_memory() -> int:
    """The memory of the box in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def entries(machine: LabMachine) -> dict[str, Entry]:
    """Returns all entries that make a machine show the memory of its SKU, or {} if the host has as much."""
    if machine.memory <= box_memory():
        return {}
    return {
        f"{_FOLDER}/memory-kb": Entry(f"{machine.memory // 1024}\n"),
        f"{_SBIN}/size-boot-stand-in": Entry(_SCRIPT, 0o755),
        f"{_UNITS}/size-boot-stand-in.service": Entry(_UNIT),
        f"{_UNITS}/sysinit.target.wants/size-boot-stand-in.service": Entry(link="../size-boot-stand-in.service"),
    }
