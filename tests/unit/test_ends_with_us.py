"""A killed test run leaves no program of its own behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.ends_with_us import ends_with_us
from tests.waiting import until

STARTS_ONE = "import subprocess, sys, time; print(subprocess.Popen(sys.argv[1:]).pid, flush=True); time.sleep(60)"


def test_it_ends_with_who_was_killed() -> None:
    command = [sys.executable, "-c", STARTS_ONE, *ends_with_us("sleep", "60")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        process = Path("/proc", starter.stdout.readline().strip())
        until(lambda: (process / "cmdline").read_bytes().startswith(b"sleep"), 30)
        starter.kill()
    until(lambda: not _runs(process), 30)


def _runs(process: Path) -> bool:
    """Whether it runs; who ended and was not asked for yet does not."""
    try:
        return " Z " not in (process / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
