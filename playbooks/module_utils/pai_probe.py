"""Collects evidence on a machine: independent, read-only probes with a time limit.

A probe is a function that returns plain values. A failed or late probe loses only its own evidence, and the cause is
recorded under its name.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any, Callable

from ansible.module_utils.pai_machine import command, program_path

Probe = Callable[[], Any]


def gather(probes: Mapping[str, Probe], timeout: float) -> tuple[dict[str, Any], dict[str, str]]:
    """Runs all probes in parallel. Returns their results, and the causes of failed probes.

    timeout: seconds for all of them together.
    """
    found: dict[str, Any] = {}
    problems: dict[str, str] = {}

    def take(name: str, probe: Probe) -> None:
        try:
            found[name] = probe()
        except Exception as error:  # whatever a machine may do, the other evidence counts
            problems[name] = f"{type(error).__name__}: {error}"[:300]

    # daemons: a file system that hangs must not keep the module from ending
    threads = {
        name: threading.Thread(target=take, args=(name, probe), daemon=True) for name, probe in sorted(probes.items())
    }
    deadline = time.monotonic() + timeout
    for thread in threads.values():
        thread.start()
    for name, thread in threads.items():
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            problems[name] = f"no answer within {timeout:g} s"
    return {name: found[name] for name in sorted(found) if name not in problems}, dict(problems)


def number(text: str) -> int | None:
    """The whole number in `text`, None when it is none."""
    try:
        return int(text)
    except ValueError:
        return None


def found_program(name: str) -> str:
    """Returns the path of a program, or "" if it is not installed."""
    return shutil.which(name, path=program_path()) or ""


def names_in(folder: str) -> list[str]:
    """Returns the sorted entries of a folder, or [] if it is unreadable."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def active_units(units: Iterable[str]) -> list[str]:
    """Those of the systemd units that are active."""
    wanted = list(units)
    # systemctl ends with 3 if one unit is inactive, and still prints a line for each.
    states = command(["systemctl", "is-active", *wanted])[1].split()
    return [unit for unit, state in zip(wanted, states) if state == "active"]


def without_login(url: str) -> str:
    """A URL without user and password."""
    return re.sub(r"//[^/@]*@", "//", url)
