"""Number of machines that Ansible configures at a time, limited by the memory and network of the controller host."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from pai_install.errors import PaiError
from pai_install.system.proc import run

# A task mostly waits for its machine. A fork is a Python process that Ansible makes for each task on each machine.
FORKS_PER_CORE = 16
FORK_BYTES = 48 << 20
# forks may take this part of the memory that is free
MEMORY_SHARE = 2
FEWEST, MOST = 5, 200
# OpenSSH begins to drop connections when ten have not logged in yet (MaxStartups 10:30:100), and every connection goes
# through the same bastion
MOST_BY_BASTION = 8
_ASK_S = 5


def forks(hosts: int, cores: int, free_bytes: int, *, bastion: bool = False) -> int:
    """Returns the forks for `hosts` machines. A small controller host gets fewer, but at least FEWEST."""
    carried = min(cores * FORKS_PER_CORE, free_bytes // MEMORY_SHARE // FORK_BYTES, MOST)
    if bastion:
        carried = min(carried, MOST_BY_BASTION)
    return max(1, min(hosts, max(FEWEST, carried)))


def forks_for(hosts: int, address: str = "") -> int:
    """As `forks`, on this host as it is now. address: of one of the machines: is there a bastion on the way?"""
    cores = len(os.sched_getaffinity(0))
    return forks(hosts, cores, free_memory(), bastion=hosts > MOST_BY_BASTION and by_bastion(address))


def free_memory(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Returns the bytes available to programs, or the need of FEWEST forks if the kernel does not report them."""
    try:
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    return FEWEST * FORK_BYTES * MEMORY_SHARE


@cache
def by_bastion(address: str) -> bool:
    """Whether the user's own settings of OpenSSH reach that address through another machine."""
    if not address:
        return False
    try:
        done = run(["ssh", "-G", address], check=False, timeout_s=_ASK_S)
    except PaiError:
        return False
    settings = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    return any(settings.get(name, "none").strip() != "none" for name in ("proxyjump", "proxycommand"))
