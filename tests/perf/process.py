"""What a process of its own costs, and on which box."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds on the clock, seconds of CPU (children included), MiB at the peak of the process; and what it printed."""

    wall_s: float
    cpu_s: float
    memory_mib: float
    output: str = ""


def cost_of(argv: Sequence[str]) -> Cost:
    """Runs a program in the repository to its end. Raises CalledProcessError when it fails."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'installer'}{os.pathsep}{ROOT}"}
    with tempfile.TemporaryFile("w+") as output:
        start = time.monotonic()
        child = subprocess.Popen(argv, stdout=output, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, list(argv), output=text)
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text)


def python(*words: str) -> list[str]:
    """A command line of this Python."""
    return [sys.executable, *words]


def pai_install(*words: str) -> list[str]:
    """A command line of pai-install, without the bootstrap script."""
    return python("-m", "pai_install", *words)


def this_machine() -> dict[str, Any]:
    """Cores, memory, load. busy: others used the cores already, so that only seconds of CPU tell."""
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": cores,
        "memory_mib": memory // 2**20,
        "load_1m": round(load, 2),
        "busy": load > cores / 2,
        "python": platform.python_version(),
    }
