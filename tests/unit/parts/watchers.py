"""Scripts that look at something, sleep, and look again."""

from __future__ import annotations

import time
from pathlib import Path


def wait_for_pause(script: int) -> None:
    """Returns once a script has looked and sleeps. script: its process."""
    deadline = time.monotonic() + 60
    while not any(_sleeps(process, script) for process in Path("/proc").glob("[0-9]*")):
        assert time.monotonic() < deadline, "the script does not look"
        time.sleep(0.02)


def _sleeps(process: Path, parent: int) -> bool:
    """Whether it is the program sleep, started by this process."""
    try:
        name, _, rest = (process / "stat").read_text().partition("(")[2].rpartition(")")
    except OSError:  # it has ended
        return False
    return name == "sleep" and int(rest.split()[1]) == parent
