"""Labs of test runs that were ended before they could take their machines down.

A lab's record names its site folder; pytest's folder around it holds the id of the process that made it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from pai_install.lab import all_labs, down_site

# /tmp/pytest-of-USER/pytest-N/..., and the lock that pytest removes when it ends
_RUN = re.compile(r"^(?P<run>.*/pytest-of-[^/]+/pytest-\d+)/")


def remove_leftovers() -> tuple[str, ...]:
    """Takes down the labs of test runs whose process is gone; returns what was removed. Nothing without root."""
    if os.geteuid() != 0:
        return ()
    sites = [record.site for _, record in all_labs() if is_leftover(record.site)]
    return tuple(line for site in sites for line in down_site(Path(site)))


def is_leftover(site: str) -> bool:
    """Whether a lab's site belongs to a test run that has ended."""
    found = _RUN.match(site)
    return found is not None and not _runs(Path(found["run"]) / ".lock")


def _runs(lock: Path) -> bool:
    try:
        os.kill(int(lock.read_text()), 0)
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return False
    except PermissionError:  # somebody else's process: it runs
        return True
    return True
