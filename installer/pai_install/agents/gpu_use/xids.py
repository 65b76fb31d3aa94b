"""Xids of the kernel log, from the journal of this boot."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from datetime import datetime

COMMAND = ("journalctl", "-k", "-b", "--no-pager", "--output=short-iso", "--grep=NVRM: Xid", "--lines=1000")
_LINE = re.compile(r"(\S{10,40}) \S+ kernel: NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]{7,16})\).*?: (\d{1,4})\b")
_TIMEOUT_S = 10
_MOST_BYTES = 1024 * 1024
_MOST = 200

# PCI address, Xid -> seconds since 1970 of the last one
Xids = dict[tuple[str, str], float]


def read(command: Sequence[str] = COMMAND) -> Xids | None:
    """Returns the last occurrence of each Xid, or None without a journal."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return parse(done.stdout[-_MOST_BYTES:])


def parse(text: str) -> Xids:
    """Lines of the journal in the form short-iso -> Xids. Other lines are left out."""
    found: Xids = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        at = _seconds(match.group(1)) if match else None
        if match and at is not None:
            key = _address(match.group(2)), match.group(3)
            if key in found or len(found) < _MOST:
                found[key] = max(at, found.get(key, 0.0))
    return found


def _address(text: str) -> str:
    """Returns an address such as 0000:3b:00.0, as the driver gives it."""
    word = text.lower()
    # Some lines of the driver leave the function of the PCI address out.
    return word if "." in word else f"{word}.0"


def _seconds(word: str) -> float | None:
    zone = re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", word.replace("Z", "+00:00"))
    try:
        return datetime.fromisoformat(zone).timestamp()
    except (ValueError, OverflowError):
        return None
