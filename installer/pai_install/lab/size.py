"""Stand-ins for memory and CPUs, where the SKU of a lab machine has more than the host.

The kubelet reports them, and the scheduler plans with them. The kernel shares the real ones among all machines.
"""

from __future__ import annotations

import os

from pai_install.lab.file_entry import Entry
from pai_install.lab.spec import LabMachine

_FOLDER = "var/lib/pai-stand-in-size"
_SBIN = "usr/local/sbin"
_UNITS = "etc/systemd/system"
_SCRIPT = f"""#!/bin/sh
# Shows the memory and the CPUs of the machine's SKU: stand-ins, since a lab machine has those of the host.
set -e
cd /{_FOLDER}
if [ -e memory-kb ]; then
    read -r kb <memory-kb
    sed "s/^MemTotal:.*/MemTotal: $kb kB/" /proc/meminfo >meminfo
    mount --bind meminfo /proc/meminfo
fi
if [ -e cpus ]; then
    read -r cpus <cpus
    last=$((cpus - 1))
    # The kubelet counts the folders of CPUs, and may use those with a topology: kubepods gets them as its cpuset.
    for number in $(seq 0 $last); do
        mkdir -p "cpu/cpu$number"
        real="/sys/devices/system/cpu/cpu$number/topology"
        if [ -d "$real" ]; then
            mkdir -p "cpu/cpu$number/topology"
            for file in core_id physical_package_id; do cat "$real/$file" >"cpu/cpu$number/topology/$file"; done
        fi
    done
    for list in online possible present; do echo "0-$last" >"cpu/$list"; done
    mount --bind cpu /sys/devices/system/cpu
    # With NUMA nodes, it would count their CPUs instead.
    if [ -d /sys/devices/system/node ]; then mount -t tmpfs -o ro,size=4k stand-in /sys/devices/system/node; fi
fi
"""
_UNIT = f"""[Unit]
Description=Show stand-ins for memory and CPUs
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


def box_cpus() -> int:
    """The CPUs of the host."""
    return os.cpu_count() or 1


def entries(machine: LabMachine) -> dict[str, Entry]:
    """Returns all entries that make a machine show the memory and CPUs of its SKU, or {} if the host has as many."""
    numbers = {}
    if machine.memory > box_memory():
        numbers["memory-kb"] = machine.memory // 1024
    if machine.cpus > box_cpus():
        numbers["cpus"] = machine.cpus
    if not numbers:
        return {}
    return {
        **{f"{_FOLDER}/{name}": Entry(f"{number}\n") for name, number in numbers.items()},
        f"{_SBIN}/size-boot-stand-in": Entry(_SCRIPT, 0o755),
        f"{_UNITS}/size-boot-stand-in.service": Entry(_UNIT),
        f"{_UNITS}/sysinit.target.wants/size-boot-stand-in.service": Entry(link="../size-boot-stand-in.service"),
    }
