"""Runs the garbage collector of the cache and describes its result. Python 3.9."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any, Dict

PROGRAM = "/usr/local/lib/pai-install/docker-cache-gc.py"
STATE = "/var/lib/pai-install/docker-cache-gc.json"
REMEDY = "run apply to install missing parts, and check journalctl --unit pai-docker-cache-gc"
REMEDY_OF_ROOM = "free space on that disk, or raise size-limit. Content of the last ten minutes is deleted later"
_DAY_S = 86400


class CollectError(Exception):
    """The garbage collector failed. The text says why."""


def collect(*, check: bool) -> Dict[str, Any]:
    """Runs the garbage collector and returns its report. check: dry run. Raises CollectError."""
    # -I keeps the folder and the environment of the caller out: root must not load a module from there.
    words = [sys.executable, "-I", PROGRAM, *(["--check"] if check else [])]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    try:
        report: Dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        errors = done.stderr.strip().splitlines()
        raise CollectError(errors[-1] if errors else f"it said nothing, status {done.returncode}") from None
    return report


def last_reports() -> Dict[str, Any]:
    """Returns the reports of the last run (last) and of the last run that deleted content (dropped), or
    None for each.
    """
    try:
        with open(STATE, encoding="utf-8") as handle:
            found: Dict[str, Any] = json.load(handle)
    except (OSError, ValueError):
        return {"last": None, "dropped": None}
    return found


def size(amount: float) -> str:
    """Bytes as people read them: 1.5 GB, 12 MB."""
    return f"{amount / 1e9:.1f} GB" if amount >= 1e9 else f"{amount / 1e6:.0f} MB"


def room(report: Dict[str, Any]) -> str:
    """Describes the used, permitted, and free space."""
    limit = f" of at most {size(report['limit'])}" if report["limit"] else ""
    free = f"{size(report['free'])} free, and {size(report['keep_free'])} to stay so"
    days = (time.time() - report["oldest_use_kept"]) / _DAY_S
    return f"{size(report['after'])} kept{limit}, unused for at most {max(days, 0):.1f} days; {free}"


def dropped(report: Dict[str, Any]) -> str:
    """What went."""
    gone = report["dropped"]
    verb = "would drop" if report["check"] else "dropped"
    return f"{verb} {size(gone['bytes'])} ({gone['count']} blobs)" if gone["count"] else "nothing to drop"


def last_words(reports: Dict[str, Any], now: float) -> str:
    """When the program ran last and when it dropped what."""
    if not reports.get("last"):
        return "what is unused has not been dropped yet"
    gone = reports.get("dropped")
    when = f"{dropped(gone)} {_ago(now - gone['at'])} ago" if gone else "has dropped nothing so far"
    return f"looked for what is unused {_ago(now - reports['last']['at'])} ago, {when}"


def _ago(seconds: float) -> str:
    if seconds < 2 * 3600:
        return f"{max(seconds, 0) / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 2 * _DAY_S else f"{seconds / _DAY_S:.0f} days"
